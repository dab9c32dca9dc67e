"""The work of a program, function by function: for a developer who looks for the cause."""

from __future__ import annotations

from jaxobs.ops.monitoring.boards.debug_rows import calls, compilations, profiles, programs, steps
from jaxobs.ops.monitoring.panel_types import Annotation, Board, Variable

BOARD = Board(
    name="debug",
    title="JAX: debug",
    description=(
        "Compilations with their causes, calls, caches, programs and steps of the chosen processes and functions."
    ),
    variables=(
        Variable(name="function", label="Function", query="label_values(jax_compilations_total{@fn}, function)"),
        Variable(name="loop", label="Loop", query="label_values(jax_steps_total{@}, loop)"),
    ),
    annotations=(
        Annotation(
            name="Recompilations",
            expr=(
                "sum by (instance, function, cause) "
                '(increase(jax_compilations_total{@fn, cause!="first_call"}[$__rate_interval])) > 0'
            ),
            title="{{function}} recompiled: {{cause}} ({{instance}})", color="orange",
        ),
        Annotation(
            name="Process starts", expr="jax_process_start_timestamp_seconds{@} * 1000",
            title="{{instance}} started", color="blue", value_is_time=True,
        ),
    ),
    rows=(compilations.ROW, calls.ROW, programs.CACHE, programs.ROW, steps.ROW, profiles.ROW),
)  # fmt: skip
