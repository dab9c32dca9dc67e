"""Facts made by hand of a process that serves: a busy route with every figure, and one of which little is known."""

from __future__ import annotations

from page_facts import NOW

from jaxobs.facts import Latency, RequestCompilation, RequestRecord, RouteState

HOSTILE = "/<img src=x onerror=document.title='pwned'>"
REASON = "Argument `rows` was float32[8,4], is now float32[16,4]; pad it to one size."

PREDICT = RouteState(
    route="/predict",
    requests={"true": {"ok": 3}, "false": {"ok": 990, "error": 7, "client_error": 2}},
    per_second=41.6,
    waited=2,
    waited_seconds=1.0,
    warm=Latency(count=512, p50=0.0041, p90=0.009, p99=0.021, longest=0.5),
    cold=Latency(count=3, p50=0.84, p90=1.2, p99=1.2, longest=1.2),
    queued=10,
    queue_seconds=0.25,
    batches=10,
    batch_used=60,
    batch_size=80,
    latest_cold=(
        RequestRecord(
            time=NOW - 5, seconds=0.84, outcome="error", cold="true", compilations=3,
            compiled=(
                RequestCompilation(function="app.classify", cause="shape", reason=REASON, cache="miss", seconds=0.7),
                RequestCompilation(function="app.embed", cause="dtype", reason="Why.", cache="hit", seconds=0.1),
            ),
        ),
    ),
)  # fmt: skip
UNSEEN = RouteState(route=HOSTILE, requests={"unknown": {"ok": 4}}, per_second=0.5)
