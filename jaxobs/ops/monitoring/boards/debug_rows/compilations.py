"""Compilations: how many, how long, and why."""

from __future__ import annotations

from jaxobs.ops.monitoring.panel_queries import highest
from jaxobs.ops.monitoring.panel_types import Column, Panel, Row, Target

CAUSE_COLORS = {"first_call": "green", "shape": "orange", "new_function": "red", "static_argument": "purple"}

ROW = Row(
    title="Compilations",
    panels=(
        Panel(
            key="recompilations",
            title="Recompilations, last 30 min",
            description=(
                "How often each function was recompiled. It should drop to 0 after the warm-up. The "
                "next panel has the causes, `jaxobs explain` the arguments that changed."
            ),
            kind="timeseries", alert="JaxRecompilationStorm", unit="short", width=12, good="low", least=0, decimals=0,
            targets=(
                Target(
                    expr=highest(
                        "job_instance_function:jax_recompilations:increase30m{@fn} "
                        "or 0 * sum by (job, instance, function) (increase(jax_compilations_total{@fn}[30m]))"
                    ),
                    legend="{{instance}} {{function}}",
                ),
            ),
        ),
        Panel(
            key="causes",
            title="Causes of compilations, last 10 min",
            description=(
                "Compilations by cause, over all selected processes. All but `first_call` can be avoided."
            ),
            kind="timeseries", unit="short", width=12, stacked=True,
            good="none", least=0, decimals=0, colors=CAUSE_COLORS,
            targets=(
                Target(expr="sum by (cause) (job_instance_cause:jax_compilations:increase10m{@})", legend="{{cause}}"),
            ),
        ),
        Panel(
            key="compile_seconds",
            title="Time spent on compiling, last 10 min",
            description="Seconds that tracing, lowering, compiling and loading took, by function.",
            kind="timeseries", unit="s", width=12, stacked=True, good="low", least=0,
            targets=(
                Target(
                    expr=highest("job_instance_function:jax_function_compile_seconds:increase10m{@fn}"),
                    legend="{{instance}} {{function}}",
                ),
            ),
        ),
        Panel(
            key="phase_seconds",
            title="Phases of a compilation, 95th percentile",
            description=(
                "How long each phase takes, over all functions. `trace` is the program's Python, `compile` is XLA, "
                "`cache_load` reads from the persistent cache."
            ),
            kind="timeseries", unit="s", width=6, good="low", least=0,
            targets=(
                Target(expr="quantile_of(0.95, jax_compile_phase_seconds{@}, phase)", legend="{{phase}}"),
            ),
        ),
        Panel(
            key="in_progress",
            title="Compiling now: since when",
            description=(
                "How long the oldest tracing, lowering or compilation of each process has been in "
                "progress; 0 while nothing compiles. A line that keeps rising is a compilation that "
                "hangs."
            ),
            kind="timeseries", alert="JaxCompilationStuck", unit="s", width=6, good="low", least=0,
            targets=(
                Target(
                    expr=highest(
                        "time() - jax_compilation_oldest_start_timestamp_seconds{@} "
                        "or 0 * jax_compilations_in_progress{@}"
                    ),
                    legend="{{instance}}",
                ),
            ),
        ),
        Panel(
            key="first_calls",
            title="First compilations, last 10 min",
            description=(
                "Functions that compiled for the first time: expected at the start and after a "
                "deployment, not later."
            ),
            kind="timeseries", unit="short", width=12, good="none", least=0, decimals=0,
            targets=(
                Target(
                    expr=highest('job_instance_cause:jax_compilations:increase10m{@, cause="first_call"}'),
                    legend="{{instance}}",
                ),
            ),
        ),
        Panel(
            key="compilation_table",
            title="Compilations by function",
            description=(
                "The most expensive functions: how often they were recompiled, and how long all of it took."
            ),
            kind="table", unit="short", width=12, good="none",
            targets=(
                Target(expr=highest("job_instance_function:jax_function_compile_seconds:increase10m{@fn}", 100)),
                Target(expr=highest("job_instance_function:jax_recompilations:increase30m{@fn} > 0", 100)),
            ),
            columns=(
                Column(source="instance", title="Process"),
                Column(source="function", title="Function"),
                Column(source="A", title="Time, last 10 min", unit="s"),
                Column(source="B", title="Recompiled, last 30 min", unit="short"),
            ),
        ),
    ),
)  # fmt: skip
