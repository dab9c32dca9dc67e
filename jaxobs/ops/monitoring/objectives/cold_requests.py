"""Cold requests: few have to wait for a compilation."""

from __future__ import annotations

from decimal import Decimal

from jaxobs.ops.monitoring.objective_types import Example, Objective
from jaxobs.ops.monitoring.promql import increase
from jaxobs.ops.monitoring.rule_texts import guide

_COLD = increase('jax_requests_total{@, cold="true"}')
_ALL = increase('jax_requests_total{@, cold=~"true|false"}')
_WARMED_UP = "(time() - jax_process_start_timestamp_seconds{@} > 1200)"

OBJECTIVE = Objective(
    name="cold-requests",
    title="Requests without a compilation",
    description="Nothing compiles inside a request, once its process is a quarter of an hour old.",
    denominator="It is a share of the requests to such processes: a start compiles.",
    absent="A job without requests is not counted.",
    service="serving",
    extended=True,
    pages=False,
    target=Decimal("0.99"),
    bad=f"sum by (job) (({_COLD}) and on (job, instance) {_WARMED_UP})",
    total=f"sum by (job) (({_ALL}) and on (job, instance) {_WARMED_UP})",
    unit="requests",
    least=Decimal(100),
    guide=guide(__name__),
    example=Example(
        good={
            'jax_requests_total{job="serve", instance="a:9464", route="predict", cold="false", outcome="ok"}': 60,
            'jax_requests_total{job="serve", instance="a:9464", route="predict", cold="true", outcome="ok"}': 0,
        },
        bad={
            'jax_requests_total{job="serve", instance="a:9464", route="predict", cold="false", outcome="ok"}': 30,
            'jax_requests_total{job="serve", instance="a:9464", route="predict", cold="true", outcome="ok"}': 30,
        },
        share=Decimal("0.5"),
        delay=21,
    ),
)  # fmt: skip
