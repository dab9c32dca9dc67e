"""A function compiles again and again."""

from __future__ import annotations

from jaxobs.operations.diagnosis.knowledge import SLOW, Alert, Event, Knowledge, Metric

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
)
