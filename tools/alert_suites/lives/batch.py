"""Jobs that come and go: batch jobs, tests, notebooks."""

from __future__ import annotations

from collections.abc import Iterable

from tools.alert_suites.kinds import Life
from tools.alert_suites.scenes import Part, Process, compiles, init, spends, trains


def _every(minutes: int, times: int, parts: list[Part], name: str, *, pods: bool, **more: object) -> Iterable[Process]:
    """Jobs follow each other at one address, or in a pod of their own each."""
    for number in range(times):
        instance = f"{number if pods else 'host'}:9464"
        yield Process(job=name, instance=instance, parts=parts, start=number * minutes, **more)  # type: ignore[arg-type]


def _research() -> Iterable[Process]:
    """Eight jobs an hour of several lengths, under one name."""
    for number in range(40):
        length = (3, 12, 25, 6, 45)[number % 5]
        parts = [init(1), compiles(1), trains(length), spends("checkpoint", 1)]
        yield Process(job="research", instance=f"{number}:9464", parts=parts, start=number * 7, up_after=5)


def _notebook() -> Iterable[Process]:
    cells = [part for _ in range(16) for part in (trains(2), spends("idle", 18))]
    yield Process(job="notebook", instance="a:9464", parts=[init(1), spends("idle", 20), compiles(1), *cells])


_TESTS = Part(
    minutes=8, time={"compile": 40, "idle": 20},
    counts={f'jax_compilations_total{{function="f{n}", cause="shape", cache="miss"}}': 3 for n in range(5)},
)  # fmt: skip


def _sweep() -> Iterable[Process]:
    for number in range(40):
        parts = [init(1), compiles(2), trains(15 + number % 9), spends("checkpoint", 2)]
        yield Process(job="sweep", instance=f"{number}:9464", parts=parts, start=number * 3 + 1)


def _one_name() -> Iterable[Process]:
    """Three jobs at a time, whose steps take 0.1 s, 1 s and 3 s; the targets of those that ended stay for an hour."""
    for number in range(12):
        steps = (600, 60, 20)[number % 3]
        parts = [init(1), compiles(2), trains(90, steps), spends("checkpoint", 2)]
        yield Process(
            job="one-name", instance=f"{number}:9464", parts=parts, start=number * 32, run=f"run-{number}", up_after=60
        )


def _cancelled() -> Iterable[Process]:
    """Jobs are stopped after an hour or two, and their targets are gone at once."""
    for number, length in enumerate((60, 110, 75)):
        parts = [init(1), compiles(2), trains(length)]
        yield Process(job="cancelled-job", instance=f"{number}:9464", parts=parts, start=number * 130)


LIVES = (
    Life(name="one-name", what="different programs train at the same time under one name", minutes=400,
         processes=_one_name),
    Life(name="cancelled-job", what="someone cancels jobs of one process in the middle of a step", minutes=400,
         processes=_cancelled),
    Life(name="sweep", what="40 trials of a search under one name, each with a program of its own", minutes=200,
         processes=_sweep),
    Life(
        name="quarter-hourly", what="a batch job of 5 minutes every quarter of an hour, at one address", minutes=400,
        processes=lambda: _every(15, 30, [init(1), compiles(1), trains(3)], "quarter-hourly", pods=False),
    ),
    Life(
        name="quarter-hourly-pods", what="the same in pods that stay `Completed`", minutes=400,
        processes=lambda: _every(
            15, 30, [init(1), compiles(1), trains(3)], "quarter-hourly-pods", pods=True, last_exit="normal",
        ),
    ),
    Life(
        name="hourly", what="batch jobs of two hours, one after another", minutes=400,
        processes=lambda: _every(
            130, 3, [init(2), compiles(3), trains(112), spends("checkpoint", 3)], "hourly", pods=True, up_after=10,
        ),
    ),
    Life(
        name="seconds", what="jobs of seconds, each scraped once", minutes=240,
        processes=lambda: _every(8, 28, [init(1)], "seconds", pods=True),
    ),
    Life(name="research", what="short jobs of several lengths under one name", minutes=300, processes=_research),
    Life(
        name="tests", what="a test suite on CPUs: many compilations, in many short processes", minutes=240,
        processes=lambda: _every(20, 11, [init(1), _TESTS], "tests", pods=True),
    ),
    Life(name="notebook", what="a notebook: two minutes of steps, then 18 minutes of thought", minutes=360,
         processes=_notebook),
    Life(name="notebook-left", what="a notebook that stays open for three hours after its last cell", minutes=300,
         processes=lambda: [
             Process(job="notebook-left", instance="a:9464",
                     parts=[init(1), compiles(1), *[trains(2), spends("idle", 18)] * 5, spends("idle", 200)])
         ]),
    Life(
        name="notebook-without-steps", what="a notebook in which nothing is a step", minutes=240,
        processes=lambda: [
            Process(
                job="notebook-without-steps", instance="a:9464",
                parts=[init(1), *[compiles(1), spends("idle", 20), compiles(1, cause="shape"), spends("idle", 10)] * 7],
            )
        ],
    ),
)  # fmt: skip
