"""Requests that wait for a compilation."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_WHOSE = 'jax_requests_total{job="serve", instance="a:9464", route="/predict", outcome="ok", cold='
_COLD, _WARM = f'{_WHOSE}"true"}}', f'{_WHOSE}"false"}}'
_START = 'jax_process_start_timestamp_seconds{job="serve", instance="a:9464"}'
_LABELS = {"job": "serve", "instance": "a:9464", "route": "/predict"}

ALERT = Alert(
    name="JaxColdRequestsHigh",
    severity="warning",
    concern="performance",
    summary="Too many requests wait for a compilation.",
    description=(
        "{{ $value | humanizePercentage }} of the requests for {{ $labels.route }} at {{ "
        "$labels.instance }} ({{ $labels.job }}) in the last 30 minutes had to compile or load a "
        "program before they were answered."
    ),
    expr=(
        'sum without (cold, outcome) (increase(jax_requests_total{@, cold="true"}[30m]))\n'
        "/\n"
        "(sum without (cold, outcome) (increase(jax_requests_total{@}[30m])) > <requests>)\n"
        "> <share>\n"
        "unless on (job, instance) time() - last_over_time(jax_process_start_timestamp_seconds{@}[30m]) < 2700"
    ),
    for_="10m",
    keep_firing_for="15m",
    labels={"phase": "compile"},
    thresholds={
        "share": Threshold(
            value=0.01,
            unit="ratio",
            least=0.0001,
            most=1,
            why="The default objective for cold requests: 99 % of the requests find their program compiled.",
        ),
        "requests": Threshold(
            value=100,
            unit="count",
            least=1,
            most=10_000_000,
            why="With fewer requests, a single cold one would exceed the share.",
        ),
    },
    panel=("oncall", "cold_share"),
    runbook=Runbook(
        meaning=(
            "More than `<share>` of the requests of a route had to wait while a program was "
            "compiled, or loaded from the persistent cache. Routes with fewer than `<requests>` "
            "requests in half an hour are ignored. The first requests after a start, before the "
            "first scrape, are not visible; those of its first quarter of an hour do not count."
        ),
        impact=(
            "These users wait for 0.1 s to minutes, and anyone who requests the same program "
            "meanwhile waits with them. Clients time out and retry, which adds load."
        ),
        diagnosis=(
            Step(
                do="See why the latest cold requests compiled.",
                command="curl -s http://HOST:9464/api/v1/snapshot | python3 -m json.tool | grep -A 25 "
                "'\"latest_cold\"'",
                answers=(
                    ("`cause: shape`", ("A size that was not compiled ahead of time: the reason names the argument.")),
                    (
                        "`cause: first_call`",
                        (
                            "The process is new and compiles during its first requests: warm it up "
                            "before it reports ready."
                        ),
                    ),
                    ("`cache: hit`", "It was loaded, not compiled: cheaper, but still cold."),
                ),
            ),
            Step(
                do="See whether processes were started.",
                query="time() - jax_process_start_timestamp_seconds{@} < 3600",
                answers=(
                    (
                        "the instance is in the answer",
                        "A start: this ends by itself. Warm up before taking traffic.",
                    ),
                    ("it is not", "The requests have changed: look for the new shapes."),
                ),
            ),
            Step(
                do="See how long they take.",
                query='sum by (route) (rate(jax_request_seconds_sum{@, cold="true"}[30m])) / (sum by (route) '
                '(rate(jax_request_seconds_count{@, cold="true"}[30m])) > 0)',
                answers=(
                    ("below 0.1 s", "Loaded from the cache: not urgent."),
                    ("seconds or more", "Compiled while users wait."),
                ),
            ),
        ),
        mitigation=(
            "If a deployment is in progress, pause it: warm processes stay warm.",
            "Take the cold instance out of rotation until it has answered one request of each size.",
            "Call `jaxobs.warmup` with every size before the process reports ready.",
            "Pad requests to the sizes that are warmed up.",
        ),
        look_alikes=(
            ("Slow requests that are warm", "`cold` is `false`", "the latency objective's alert"),
            (
                "Requests that wait for another request's compilation",
                "`jax_request_waited_seconds_count` rises",
                "the same fix: compile ahead of time",
            ),
            ("Sizes without a bound", "the finding `unbounded_shapes` is active", "JaxUnboundedShapes"),
            ("A cache that no longer hits", "lookups miss after a restart", "JaxPersistentCacheLostAfterRestart"),
        ),
        evidence=(
            "The latest cold requests with their reasons, from `/api/v1/snapshot`.",
            "When the instance started, and which version it runs.",
        ),
        verify="The share is below `<share>` for half an hour of normal traffic.",
    ),
    cases=(
        Case(
            kind="firing",
            at="99m",
            series={_WARM: "0+989x120", _COLD: "0x60 11+11x60"},
            fires=(Fired(labels=_LABELS, values=("1.1%",)),),
        ),
        Case(
            kind="firing",
            at="50m",
            series={_WARM: "0+3.5x90", _COLD: "0+0.2x90"},
            fires=(Fired(labels=_LABELS, values=("5.405%",)),),
        ),
        Case(kind="pending", at="95m", series={_WARM: "0+989x120", _COLD: "0x60 11+11x60"}),
        Case(kind="healthy", at="90m", series={_WARM: "0+991x120", _COLD: "0+9x120"}),
        Case(kind="healthy", at="90m", series={_WARM: "0+1.5x120", _COLD: "0+1.5x120"}),
        Case(kind="healthy", at="40m", series={_WARM: "0+989x120", _COLD: "0+11x120", _START: "0x120"}),
        Case(
            kind="firing",
            at="60m",
            series={_WARM: "0+989x120", _COLD: "0+11x120", _START: "0x120"},
            fires=(Fired(labels=_LABELS, values=("1.1%",)),),
        ),
        Case(
            kind="healthy",
            at="46m",
            series={_WARM: "0+989x20 stale", _COLD: "0+11x20 stale", _START: "0x20 stale"},
        ),
        Case(kind="recovering", at="135m", series={_WARM: "0+989x150", _COLD: "0x60 11+11x44 495x60"}),
        Case(kind="target_gone", at="150m", series={_WARM: "0+989x100 stale", _COLD: "0x60 11+11x39 stale"}),
        Case(
            kind="counter_reset",
            at="105m",
            series={_WARM: "0+989x94 0+989x30", _COLD: "0x60 11+11x33 0+11x30"},
            fires=(Fired(labels=_LABELS, values=("1.1%",)),),
        ),
    ),
)
