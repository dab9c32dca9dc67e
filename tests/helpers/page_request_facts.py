"""Facts made by hand of a process that serves: a busy route with every figure, and one of which little is known."""

from __future__ import annotations

from helpers.page_facts import NOW
from jaxobs.facts.requests import EngineState, Latency, RequestCompilation, RequestRecord, RouteState

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
GENERATE = RouteState(
    route="/generate",
    requests={"false": {"ok": 90, "cancelled": 2}},
    per_second=3.2,
    warm=Latency(count=92, p50=1.4, p90=2.9, p99=4.1, longest=4.2),
    input_tokens=18_400,
    output_tokens=41_000,
    output_tokens_per_second=1424.6,
    finish_reasons={"length": 8, "stop": 80, "tool_calls": 2},
    first_token=Latency(count=92, p50=0.18, p90=0.4, p99=0.9, longest=1.1),
    output_token=Latency(count=90, p50=0.0125, p90=0.02, p99=0.031, longest=0.05),
)
ENGINES = (
    EngineState(engine="a", running=8, waiting=2, kv_cache_ratio=0.4),
    EngineState(engine="b", running=1, waiting=1, kv_cache_ratio=0.86),
)
