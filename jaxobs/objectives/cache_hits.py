"""Hits of the persistent compilation cache."""

from __future__ import annotations

from decimal import Decimal

from jaxobs.objective_types import Example, Guide, Objective
from jaxobs.promql import increase
from jaxobs.rule_types import Step

OBJECTIVE = Objective(
    name="cache-hits",
    title="Hits of the compile cache",
    description="Programs are loaded from the persistent compilation cache, not compiled again.",
    service="training",
    target=Decimal("0.8"),
    bad=f"""sum by (job) ({increase('jax_persistent_cache_requests_total{@, result="miss"}')})""",
    total=f"""sum by (job) ({increase('jax_persistent_cache_requests_total{@, result=~"hit|miss"}')})""",
    unit="lookups",
    least=Decimal(200),
    needs="persistent_cache",
    guide=Guide(
        impact="Each start and each restart compiles again what is on disk, for minutes on many accelerators.",
        diagnosis=(
            Step(
                do="Ask which functions miss.",
                query=(
                    "topk(10, sum by (job, function) "
                    '(increase(jax_persistent_cache_requests_total{@, result="miss"}[6h])))'
                ),
                answers=(
                    ("All of them", "The key differs: versions, flags, or the cache's path. Go on."),
                    ("One", "Its program differs in each run: something in it is made of time or addresses."),
                ),
            ),
            Step(
                do="Ask the cache itself.",
                command="jaxobs cache inspect DIRECTORY && jaxobs cache verify DIRECTORY",
                answers=(
                    ("`differs`", "The part of the key that changed since the entry was written."),
                    ("Truncated or unreadable entries", "A writer died or the disk was full: delete these files."),
                ),
            ),
        ),
        mitigation=("Give all processes the same directory, versions and flags.", "Fill it with `jaxobs cache warm`."),
        look_alikes=(
            ("New code", "the functions that miss have changed", "nothing to do: the next start hits"),
            ("Programs too fast to be stored", "`jax_persistent_cache_unsaved_total` grows with `too_fast`",
             "lower `jax_persistent_cache_min_compile_time_secs`"),
        ),
    ),
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
