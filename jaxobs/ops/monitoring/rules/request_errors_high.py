"""A route of which many requests fail."""

from __future__ import annotations

from jaxobs.ops.monitoring.promql import PROBES
from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_WHOSE = 'job="serve", instance="a:9464", route="predict", cold="false"'
_OK, _ERROR = (f'jax_requests_total{{{_WHOSE}, outcome="{outcome}"}}' for outcome in ("ok", "error"))
_LABELS = {"job": "serve", "instance": "a:9464", "route": "predict"}

ALERT = Alert(
    name="JaxRequestErrorsHigh",
    severity="warning",
    concern="availability",
    summary="Many requests of a route fail.",
    description=(
        "{{ $value | humanizePercentage }} of the requests of {{ $labels.route }} on {{ $labels.instance }} ({{ "
        "$labels.job }}) failed in the last 15 minutes."
    ),
    expr=(
        f'sum without (cold, outcome) (increase(jax_requests_total{{@, outcome="error", route!~"{PROBES}"}}[15m]))\n'
        "/\n"
        "(sum without (cold, outcome) (increase(jax_requests_total{@}[15m])) > <requests>)\n"
        "> <share>"
    ),
    for_="5m",
    keep_firing_for="10m",
    thresholds={
        "share": Threshold(
            value=0.05, unit="ratio", least=0.0001, most=1,
            why="One in twenty: callers notice, and it is more than a bad client or a single retry causes.",
        ),
        "requests": Threshold(
            value=30, unit="count", least=0, most=1_000_000_000,
            why="Two a minute: with fewer requests, a single failure would be a large share.",
        ),
    },
    panel=("oncall", "request_errors"),
    runbook=Runbook(
        meaning=(
            "More than `<share>` of the requests of one route of one process ended with status 500 "
            "or above or an exception, with more than `<requests>` requests in a quarter of an hour. "
            "Rejected inputs (status 400 to 499) and requests that the client abandoned do not "
            "count. The alert looks at each process, so that one bad replica among many is detected."
        ),
        impact="Callers get errors and retry, so the load rises.",
        diagnosis=(
            Step(
                do="See whether one replica fails, or all.",
                query='sum by (job, instance, route) (rate(jax_requests_total{@, outcome="error"}[15m]))',
                answers=(
                    ("one instance", "Its device or its start: take it out, then investigate."),
                    ("all", "The version, the model, or something they share."),
                ),
            ),
            Step(
                do="See whether JAX's functions raise.",
                query=(
                    "sum by (job, instance, function, error) "
                    "(job_instance_function_error:jax_function_errors:increase30m{@fn}) > 0"
                ),
                answers=(
                    ("rows", "JaxFunctionErrors has the steps for each type of error."),
                    ("nothing", "The handler around it: decoding, a database, a timeout. See its own log."),
                ),
            ),
            Step(
                do="Read the error texts.",
                command="jaxobs explain http://HOST:9464",
                answers=(
                    ("RESOURCE_EXHAUSTED", "JaxOutOfMemory."),
                    ("no error of JAX", "The handler's own log has it."),
                ),
            ),
        ),
        mitigation=(
            "Take a replica that fails alone out of the load balancer.",
            "If a deployment caused it, roll back.",
            "If it runs out of memory under load, limit concurrent requests, or the batch size.",
        ),
        look_alikes=(
            (
                "Slow requests that are abandoned",
                "`outcome` is `cancelled`",
                "JaxRequestQueueing, JaxColdRequestsHigh",
            ),
            ("Rejected inputs", "`outcome` is `client_error`", "the callers"),
            ("Requests that do not arrive", "no requests at all", "JaxTargetDown, or the load balancer"),
        ),
        evidence=(
            "The share by replica and route.",
            "The text and stack of one failure.",
            "The latest deployed version, and when it was deployed.",
        ),
        verify="The share on the panel is below `<share>` for a quarter of an hour at normal load.",
    ),
    cases=(
        Case(
            kind="firing", at="45m", series={_OK: "0+189x90", _ERROR: "0x15 11+11x60"},
            fires=(Fired(labels=_LABELS, values=("5.5%",)),),
        ),
        Case(
            kind="firing", at="22m", series={_OK: "0+2x60", _ERROR: "0+0.25x60"},
            fires=(Fired(labels=_LABELS, values=("11.11%",)),),
        ),
        Case(kind="pending", at="18m", series={_OK: "0+2x60", _ERROR: "0+0.25x60"}),
        Case(kind="healthy", at="40m", series={_OK: "0+191x60", _ERROR: "0+9x60"}),
        Case(kind="healthy", at="40m", series={_OK: "0+1.5x60", _ERROR: "0+0.25x60"}),
        Case(kind="recovering", at="70m", series={_OK: "0+188x90", _ERROR: "0+12x30 372x60"}),
        Case(kind="target_gone", at="70m", series={_OK: "0+188x30 stale", _ERROR: "0+12x30 stale"}),
        Case(
            kind="counter_reset", at="40m", series={_OK: "0+180x30 0+180x40", _ERROR: "0+20x30 0+20x40"},
            fires=(Fired(labels=_LABELS, values=("10%",)),),
        ),
    ),
    needs="serving",
)  # fmt: skip
