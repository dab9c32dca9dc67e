"""How services die or decay."""

from __future__ import annotations

from dataclasses import replace

from tools.alert_suites.kinds import Death
from tools.alert_suites.scenes import Part, Process, init, queues, serves

_BEGIN = [init(1), serves(99)]


def _replicas(name: str, count: int, *parts: Part) -> list[Process]:
    return [Process(job=name, instance=f"{index}:9464", parts=[*_BEGIN, *parts]) for index in range(count)]


_COMPILES = Part(
    minutes=60, time={"compile": 60},
    gauges={"jax_compilation_oldest_start_timestamp_seconds": 6000, "jax_requests_in_flight": 5},
)  # fmt: skip
_QUEUES = Part(
    minutes=200, gauges={"jax_requests_in_flight": 40},
    counts={
        'jax_requests_total{route="/predict", cold="false", outcome="ok"}': 60,
        'jax_request_seconds_count{route="/predict", cold="false"}': 60,
        'jax_request_seconds_sum{route="/predict", cold="false"}': 3,
        'jax_request_queue_seconds_count{route="/predict"}': 60,
        'jax_request_queue_seconds_sum{route="/predict"}': 120,
    },
)  # fmt: skip

DEATHS = (
    Death(name="only-errors", what="a fleet answers only 5xx", alert="JaxSloRequestAvailabilityBurn",
          severity="critical", at=100, within=20, processes=lambda: _replicas("only-errors", 4, serves(60, errors=60))),
    Death(name="some-errors", what="a tenth of the requests fail for an hour", alert="JaxRequestErrorsHigh",
          severity="warning", at=100, within=20, live="requests",
          processes=lambda: _replicas("some-errors", 2, serves(60, errors=6))),
    Death(name="service-gone", what="all replicas are gone", alert="JaxJobAbsent", severity="critical", at=100,
          within=15, processes=lambda: _replicas("service-gone", 3), live="gone"),
    Death(name="idle-service-gone", what="all replicas are gone after a night without traffic",
          alert="JaxIdleServiceGone", severity="warning", at=200, within=22,
          processes=lambda: _replicas("idle-service-gone", 3, serves(100, requests=0, in_flight=0))),
    Death(name="hangs-in-requests", what="all replicas take requests and finish none", alert="JaxRequestsStalled",
          severity="critical", at=100, within=20,
          processes=lambda: _replicas("hangs-in-requests", 3, serves(100, requests=0, in_flight=30))),
    Death(name="half-gone", what="half of 40 busy replicas vanish at once", alert="JaxServiceHalfDown",
          severity="critical", at=100, within=8,
          processes=lambda: [*_replicas("half-gone", 40)[:20], *_replicas("half-gone", 40, serves(60))[20:]]),
    Death(name="half-down", what="half of 20 replicas do not answer", alert="JaxServiceHalfDown", severity="critical",
          at=100, within=8,
          processes=lambda: [*(replace(each, up_after=60) for each in _replicas("half-down", 20)[:10]),
                             *_replicas("half-down", 20, serves(60))[10:]]),
    Death(name="all-down", what="all of 10 replicas stop answering, and their targets stay", alert="JaxServiceHalfDown",
          severity="critical", at=100, within=8, lasts=90,
          processes=lambda: [replace(each, up_after=90) for each in _replicas("all-down", 10)]),
    Death(name="idle-down", what="all of 10 replicas stop answering after a night without traffic",
          alert="JaxServiceHalfDown", severity="critical", at=200, within=8, lasts=90,
          processes=lambda: [replace(each, up_after=90) for each in
                             _replicas("idle-down", 10, serves(100, requests=0, in_flight=0))]),
    Death(name="third-gone", what="more than a third of 40 busy replicas vanish at once", alert="JaxReplicasLost",
          severity="warning", at=100, within=8,
          processes=lambda: [*_replicas("third-gone", 40)[:15], *_replicas("third-gone", 40, serves(60))[15:]]),
    Death(name="compiles-in-service", what="a server compiles for a quarter of an hour", alert="JaxCompilationStuck",
          severity="critical", at=100, within=16, lasts=60,
          processes=lambda: _replicas("compiles-in-service", 1, _COMPILES)),
    Death(name="never-warm", what="a fifth of the requests compile, hours after the start", alert="JaxColdRequestsHigh",
          severity="warning", at=100, within=20, live="requests",
          processes=lambda: _replicas("never-warm", 2, serves(100, cold=12))),
    Death(name="cache-full", what="an inference engine's cache is full, and its queue grows", alert="JaxKvCacheFull",
          severity="warning", at=110, within=15, processes=lambda: _replicas("cache-full", 1, *queues(90, 0, more=1))),
    Death(name="queues", what="requests wait longer than they take", alert="JaxRequestQueueing", severity="warning",
          at=100, within=15, live="requests", processes=lambda: _replicas("queues", 1, _QUEUES)),
)  # fmt: skip
