"""A function compiles again and again."""

from __future__ import annotations

from jaxobs.operations.diagnosis.evidence import METRIC, Evidence, Observation
from jaxobs.operations.diagnosis.knowledge import SLOW, Alert, Event, Knowledge, Metric

_YOUNG = 2700.0
"""Seconds after its start in which a program compiles what it needs. As in JaxRecompilationStorm."""
_START = "jax_process_start_timestamp_seconds"


def _at_start(evidence: Evidence, sign: Observation) -> bool:
    """Whether a process has compiled in its first minutes, as each does."""
    if sign.kind != METRIC or sign.time is None or not sign.process:
        return False
    began = [
        each.value
        for each in evidence.of_kind(METRIC)
        if each.name == _START and each.process == sign.process and each.source == sign.source and each.value
    ]
    return any(0 <= sign.time - each < _YOUNG for each in began)


KNOWN = Knowledge(
    title="A function recompiles again and again",
    impact=SLOW,
    signs=(
        Event(
            "finding:(?:recompile_storm|unbounded_shapes|unbounded_structures|recreated_functions|"
            "static_values|identity_hashed_static|flip_flop|costly_recompilations|eager_recompiles|"
            "forgotten_programs)"
        ),
        Metric(
            "jax_compilations_total",
            over=20,
            labels=(
                ("cause", "shape|dtype|structure|static_argument|new_function|sharding|context|jit_options"),
                ("function", "(?!<eager>|<other>).*"),
            ),
            weak=True,
        ),
        Alert("JaxRecompilationStorm", weak=False),
        Alert("JaxUnboundedShapes", weak=False),
    ),
    needs=("event-log", "metrics-file", "target", "prometheus"),
    shown_by=("event-log",),
    fix="`jaxobs explain` names the argument and the line.",
    runbook="JaxRecompilationStorm",
    beside=(_START,),
    ordinary=_at_start,
)
