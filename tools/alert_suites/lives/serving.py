"""Services while all is well."""

from __future__ import annotations

from collections.abc import Iterable

from tools.alert_suites.kinds import Life
from tools.alert_suites.scenes import Part, Process, init, queues, serves, spends


def _replicas(name: str, count: int, parts: list[Part], **more: object) -> list[Process]:
    return [Process(job=name, instance=f"{index}:9464", parts=parts, **more) for index in range(count)]  # type: ignore[arg-type]


def _rolling() -> Iterable[Process]:
    """Replicas are replaced by a new version, six minutes apart."""
    for number in range(10):
        end = 60 + number * 6
        yield Process(job="rolling", instance=f"old{number}:9464", parts=[init(1), serves(end - 1)], older=600)
        new = [init(1), serves(2, cold=10), serves(300)]
        yield Process(job="rolling", instance=f"new{number}:9464", parts=new, start=end - 2, version="0.10.3")


def _scaled() -> Iterable[Process]:
    """From 2 replicas to 40 as the traffic rises, and back after it has fallen."""
    for number in range(40):
        begin = 0 if number < 2 else 60 + number
        quiet = 150
        end = 300 if number < 2 else quiet + 8 + (40 - number)
        busy = [init(1), serves(1, cold=6), serves(quiet - begin - 2)]
        yield Process(
            job="scaled", instance=f"{number}:9464", start=begin,
            parts=[*busy, serves(end - quiet, requests=3, in_flight=0)],
        )  # fmt: skip


def _night_deployment() -> Iterable[Process]:
    yield from _replicas("night-deployment", 2, [init(1), serves(60), serves(60, requests=0, in_flight=0, probes=6)])
    for index in range(2):
        asleep = Part(minutes=300, time={"idle": 60}, gauges={"jax_requests_in_flight": 0})
        yield Process(job="night-deployment", instance=f"{index}:9464", parts=[init(1), asleep], start=122)


_FAILING_PROBE = Part(
    minutes=12, time={"init": 60}, gauges={"jax_requests_in_flight": 0},
    counts={'jax_requests_total{route="/healthz", cold="false", outcome="error"}': 12},
)  # fmt: skip


def _to_zero() -> Iterable[Process]:
    """No request for a quarter of an hour, then no replica, and later both."""
    yield from _replicas("scaled-to-zero", 2, [init(1), serves(60), serves(15, requests=0, in_flight=0)])
    for index in range(2):
        yield Process(job="scaled-to-zero", instance=f"new{index}:9464", parts=[init(1), serves(100)], start=200)


def _canary() -> Iterable[Process]:
    yield from _replicas("canary", 9, [init(1), serves(239)], older=600)
    new = [init(1), serves(2, cold=6), serves(180)]
    yield Process(job="canary", instance="new:9464", parts=new, start=40, version="0.10.3")


def _blue_green() -> Iterable[Process]:
    """Ten new replicas beside the old ones, and half an hour later the old ones are gone at once."""
    for index in range(10):
        blue = [init(1), serves(119), serves(30, requests=30)]
        green = [init(2), serves(2, requests=30, cold=4), serves(26, requests=30), serves(100)]
        yield Process(job="blue-green", instance=f"blue{index}:9464", parts=blue, older=600)
        yield Process(job="blue-green", instance=f"green{index}:9464", parts=green, start=120, version="0.10.3")


_CANCELLED = Part(
    minutes=200, time={"idle": 60}, gauges={"jax_requests_in_flight": 2},
    counts={f'jax_requests_total{{route="/generate", cold="false", outcome="{outcome}"}}': number
            for outcome, number in (("ok", 40), ("cancelled", 20))},
)  # fmt: skip
_LOOPS = Part(
    minutes=100, time={"unattributed": 59.6, "compile": 0.4},
    counts={
        'jax_steps_total{loop="predict"}': 300,
        'jax_requests_total{route="/predict", cold="false", outcome="ok"}': 300,
    },
    gauges={"jax_requests_in_flight": 1},
)  # fmt: skip

LIVES = (
    Life(name="scaled-to-zero", what="a service without traffic is scaled to zero, and back", minutes=240,
         processes=_to_zero),
    Life(name="canary", what="one of ten replicas has a new version for hours", minutes=240, processes=_canary),
    Life(name="blue-green", what="new replicas start next to the old ones, which then vanish at once", minutes=240,
         processes=_blue_green),
    Life(name="cancelled", what="clients give up a third of the requests", minutes=200,
         processes=lambda: _replicas("cancelled", 2, [init(1), _CANCELLED])),
    Life(
        name="long-answers", what="answers that take seven minutes", minutes=230,
        processes=lambda: _replicas(
            "long-answers", 4, [init(3), serves(230, 1.5, seconds=400, route="/batch", in_flight=10)]
        ),
    ),
    Life(
        name="plain-server", what="a threaded HTTP server: 15.7 s `init`, and nothing else that jaxobs sees",
        minutes=400, live="serving",
        processes=lambda: _replicas(
            "plain-server", 2, [Part(minutes=400, once={'jax_time_seconds_total{category="init"}': 15.7})]
        ),
    ),
    Life(
        name="calls-in-a-loop", what="a server whose calls look like the steps of a loop", minutes=400, live="serving",
        processes=lambda: _replicas("calls-in-a-loop", 2, [init(1), *[_LOOPS, serves(1, cold=0.4)] * 3, _LOOPS]),
    ),
    Life(
        name="one-error", what="one error in 12,000 requests", minutes=240,
        processes=lambda: _replicas(
            "one-error", 1,
            [init(1), serves(100, 60),
             Part(minutes=1, once={'jax_function_errors_total{function="f", error="ValueError"}': 1,
                                   'jax_requests_total{route="/predict", cold="false", outcome="error"}': 1}),
             serves(130, 60)],
        ),
    ),
    Life(
        name="language-model", what="an LLM server answers in 1.5 s", minutes=240,
        processes=lambda: _replicas("language-model", 4, [init(3), serves(230, 40, seconds=1.5, route="/generate")]),
    ),
    Life(
        name="slow-language-model", what="an LLM server answers in 40 s", minutes=240,
        processes=lambda: _replicas("slow-language-model", 4, [init(3), serves(230, 12, seconds=40, route="/chat")]),
    ),
    Life(
        name="night", what="a night without traffic", minutes=400,
        processes=lambda: _replicas(
            "night", 3, [init(1), serves(100), serves(300, requests=0, in_flight=0), serves(79)]
        ),
    ),
    Life(name="rolling", what="a rolling deployment of a new version over 10 replicas", minutes=240,
         processes=_rolling),
    Life(name="scaled", what="autoscaling from 2 replicas to 40 and back", minutes=300, processes=_scaled),
    Life(name="night-deployment", what="a deployment at night, with no request afterwards", minutes=400,
         processes=_night_deployment),
    Life(
        name="clients-mistakes", what="a third of the requests are the clients' mistakes", minutes=240,
        processes=lambda: _replicas("clients-mistakes", 2, [init(1), serves(235, 60, client_errors=20)]),
    ),
    Life(
        name="warming-up", what="a readiness probe fails for 12 minutes while a server warms up", minutes=120,
        processes=lambda: _replicas("warming-up", 2, [_FAILING_PROBE, serves(5, cold=3), serves(100)]),
    ),
    Life(name="full-cache", what="an inference engine's cache is full, and few requests wait", minutes=120,
         processes=lambda: _replicas("full-cache", 2, [init(1), *queues(10, 3), *queues(1, 20), *queues(100, 3)])),
    Life(
        name="few-requests", what="a request every ten minutes, and one of them fails", minutes=400,
        processes=lambda: _replicas(
            "few-requests", 1, [init(1), serves(200, 0.1), serves(10, 0.1, errors=0.1), serves(260, 0.1)]
        ),
    ),
    Life(
        name="idle-with-model", what="a server that is loaded and gets no request at all", minutes=240,
        processes=lambda: _replicas("idle-with-model", 2, [init(4), spends("idle", 230)]),
    ),
)  # fmt: skip
