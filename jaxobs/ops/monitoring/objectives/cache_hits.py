"""Hits of the persistent compilation cache."""

from __future__ import annotations

from decimal import Decimal

from jaxobs.ops.monitoring.objective_types import Example, Objective
from jaxobs.ops.monitoring.promql import increase
from jaxobs.ops.monitoring.rule_texts import guide

OBJECTIVE = Objective(
    name="cache-hits",
    title="Hits of the persistent cache",
    description="Programs are loaded from the persistent cache, not recompiled.",
    denominator="It is a share of lookups that hit or missed; those with the cache switched off are not counted.",
    absent="A job without a persistent cache is not counted.",
    service="training",
    extended=True,
    target=Decimal("0.8"),
    bad=f"""sum by (job) ({increase('jax_persistent_cache_requests_total{@, result="miss"}')})""",
    total=f"""sum by (job) ({increase('jax_persistent_cache_requests_total{@, result=~"hit|miss"}')})""",
    unit="lookups",
    least=Decimal(200),
    guide=guide(__name__),
    example=Example(
        good={
            'jax_persistent_cache_requests_total{job="train", instance="a:9464", function="f", result="hit"}': 60,
            'jax_persistent_cache_requests_total{job="train", instance="a:9464", function="f", result="miss"}': 0,
        },
        bad={
            'jax_persistent_cache_requests_total{job="train", instance="a:9464", function="f", result="hit"}': 6,
            'jax_persistent_cache_requests_total{job="train", instance="a:9464", function="f", result="miss"}': 54,
        },
        share=Decimal("0.9"),
    ),
)  # fmt: skip
