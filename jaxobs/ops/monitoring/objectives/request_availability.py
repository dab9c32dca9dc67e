"""Availability: requests are answered without a service error."""

from __future__ import annotations

from decimal import Decimal

from jaxobs.ops.monitoring.objective_types import Example, Guide, Objective
from jaxobs.ops.monitoring.promql import PROBES, increase
from jaxobs.ops.monitoring.rule_types import Step

_FAILED = f'jax_requests_total{{@, outcome="error", route!~"{PROBES}"}}'
_ANSWERED = f'jax_requests_total{{@, outcome!="cancelled", route!~"{PROBES}"}}'

OBJECTIVE = Objective(
    name="request-availability",
    title="Availability",
    description="Requests are answered without a service error.",
    denominator=(
        "It is a share of all requests except those that the client gave up and those for health checks and metrics; "
        "a client's own mistake (4xx) counts as answered."
    ),
    absent="A job without requests, as at night, is not counted; one that is gone is JaxJobAbsent's.",
    service="serving",
    target=Decimal("0.99"),
    bad=f"sum by (job) ({increase(_FAILED)})",
    total=f"sum by (job) ({increase(_ANSWERED)})",
    unit="requests",
    least=Decimal(100),
    needs="serving",
    guide=Guide(
        impact="Callers get errors instead of answers, and retry, which adds load.",
        diagnosis=(
            Step(
                do="See which routes and which processes fail.",
                query='sum by (job, instance, route) (increase(jax_requests_total{@, outcome="error"}[15m])) > 0',
                answers=(
                    ("One instance", "Its device or its start failed: take it out of the load balancer."),
                    ("One route", "Its handler or its inputs: read the exception in the next step."),
                    ("All of them", "A rollout, or something that all of them need: undo the rollout first."),
                ),
            ),
            Step(
                do="Read what the process says of its errors.",
                command="jaxobs explain http://HOST:9464",
                answers=(
                    ("`failed_requests`", "Its sentence names the exception and the line."),
                    ("Out of memory", "JaxOutOfMemory"),
                ),
            ),
        ),
        mitigation=(
            "Undo the last rollout.",
            "Take failing instances out of the load balancer, and restart them.",
        ),
        look_alikes=(
            ("One route of one process fails", "the share over the whole job is small", "JaxRequestErrorsHigh"),
            ("The clients send nonsense", "`outcome` is `client_error`", "nothing: these count as answered"),
        ),
    ),
    example=Example(
        good={
            'jax_requests_total{job="serve", instance="a:9464", route="predict", cold="false", outcome="ok"}': 60,
            'jax_requests_total{job="serve", instance="a:9464", route="predict", cold="false", outcome="error"}': 0,
        },
        bad={
            'jax_requests_total{job="serve", instance="a:9464", route="predict", cold="false", outcome="ok"}': 30,
            'jax_requests_total{job="serve", instance="a:9464", route="predict", cold="false", outcome="error"}': 30,
        },
        share=Decimal("0.5"),
    ),
)  # fmt: skip
