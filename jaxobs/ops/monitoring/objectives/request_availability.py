"""Availability: requests are answered without a service error."""

from __future__ import annotations

from decimal import Decimal

from jaxobs.ops.monitoring.objective_types import Example, Objective
from jaxobs.ops.monitoring.promql import PROBES, increase
from jaxobs.ops.monitoring.rule_texts import guide

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
    culprit=("route", _FAILED),
    least=Decimal(100),
    guide=guide(__name__),
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
