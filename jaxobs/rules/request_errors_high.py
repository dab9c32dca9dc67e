"""A route of which many requests fail."""

from __future__ import annotations

from jaxobs.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

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
        'sum without (cold, outcome) (increase(jax_requests_total{@, outcome="error"}[15m]))\n'
        "/\n"
        "(sum without (cold, outcome) (increase(jax_requests_total{@}[15m])) > <requests>)\n"
        "> <share>"
    ),
    for_="5m",
    keep_firing_for="10m",
    thresholds={
        "share": Threshold(
            value=0.05, unit="ratio", least=0.0001, most=1,
            why="One in twenty: callers notice, and it is more than a bad client or a single retry makes.",
        ),
        "requests": Threshold(
            value=30, unit="count", least=0, most=1_000_000_000,
            why="Two a minute: with fewer, a single failure would be a large share.",
        ),
    },
    panel=("oncall", "request_errors"),
    runbook=Runbook(
        meaning=(
            "Of the requests of one route of one process, more than `<share>` ended with status 500 and above or an "
            "exception, "
            "with more than `<requests>` requests in a quarter of an hour. Refused inputs (status 400 to 499) and "
            "requests that "
            "the client gave up do not count. It looks at each process, so that one bad replica is seen among many."
        ),
        impact="Callers get errors, and retry: the load rises with them.",
        diagnosis=(
            Step(
                do="See whether one replica fails, or all.",
                query='sum by (job, instance, route) (rate(jax_requests_total{@, outcome="error"}[15m]))',
                answers=(
                    ("one instance", "Its device or its start: take it out, then look."),
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
                    ("rows", "JaxFunctionErrors has the steps by type of the error."),
                    ("nothing", "The handler around it: decoding, a database, a time-out. See its own log."),
                ),
            ),
            Step(
                do="Read the texts.",
                command="jaxobs explain http://HOST:9464",
                answers=(
                    ("RESOURCE_EXHAUSTED", "JaxOutOfMemory."),
                    ("no error of JAX", "The handler's own log has it."),
                ),
            ),
        ),
        mitigation=(
            "Take a replica that fails alone out of the load balancer.",
            "If a deployment brought it, roll back.",
            "If memory is out under load, limit the requests at once, or the size of a batch.",
        ),
        look_alikes=(
            (
                "Requests that are slow, and given up",
                "`outcome` is `cancelled`",
                "JaxRequestQueueing, JaxColdRequestsHigh",
            ),
            ("Inputs that are refused", "`outcome` is `client_error`", "the callers"),
            ("Requests that do not arrive", "no requests at all", "JaxTargetDown, or the load balancer"),
        ),
        evidence=(
            "The share by replica and route.",
            "The text and stack of one failure.",
            "The version that was deployed last, and when.",
        ),
        verify="The share on the panel is below `<share>` for a quarter of an hour at the usual load.",
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
