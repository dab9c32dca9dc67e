"""Hits of the persistent compilation cache."""

from __future__ import annotations

from decimal import Decimal

from jaxobs.ops.monitoring.objective_types import Example, Guide, Objective
from jaxobs.ops.monitoring.promql import increase
from jaxobs.ops.monitoring.rule_types import Step

OBJECTIVE = Objective(
    name="cache-hits",
    title="Hits of the persistent cache",
    description="Programs are loaded from the persistent cache, not recompiled.",
    denominator="It is a share of lookups that hit or missed; those with the cache switched off are not counted.",
    absent="A job without a persistent cache is not counted.",
    service="training",
    target=Decimal("0.8"),
    bad=f"""sum by (job) ({increase('jax_persistent_cache_requests_total{@, result="miss"}')})""",
    total=f"""sum by (job) ({increase('jax_persistent_cache_requests_total{@, result=~"hit|miss"}')})""",
    unit="lookups",
    least=Decimal(200),
    needs="persistent_cache",
    guide=Guide(
        impact=("Each start and each restart recompiles programs that are on disk, for minutes on "
               "many accelerators."),
        diagnosis=(
            Step(
                do="See which functions miss.",
                query=(
                    "topk(10, sum by (job, function) "
                    '(increase(jax_persistent_cache_requests_total{@, result="miss"}[6h])))'
                ),
                answers=(
                    ("All of them", "The key differs: versions, flags, or the cache's path. Continue."),
                    ("One", "Its program differs in each run: something in it depends on time or addresses."),
                ),
            ),
            Step(
                do="See whether the entries exist and can be read.",
                command="jaxobs cache inspect DIRECTORY --event-log EVENTLOG",
                answers=(
                    ("PROBLEM (broken_entries)", ("A writer died or the disk was full: delete the "
                                                 "files it names.")),
                    ("entries, and no problem", "The keys differ: try the next step."),
                ),
            ),
            Step(
                do="Test whether a second start hits at all.",
                command="jaxobs cache verify -- python train.py --steps 3",
                answers=(
                    ("`differs`", "The part of the key that changes from start to start."),
                    ("The warm start hits.", "The real job differs: its flags, versions or the directory path."),
                ),
            ),
        ),
        mitigation=("Give all processes the same directory, versions and flags.", "Fill it with `jaxobs cache warm`."),
        look_alikes=(
            ("New code", "the functions that miss have changed", "nothing: the next start hits"),
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
