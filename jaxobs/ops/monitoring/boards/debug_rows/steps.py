"""Steps and what keeps them waiting."""

from __future__ import annotations

from jaxobs.ops.monitoring.boards.executive import CATEGORY_COLORS
from jaxobs.ops.monitoring.panel_queries import highest
from jaxobs.ops.monitoring.panel_types import Panel, Row, Target

ROW = Row(
    title="Steps, input, host",
    panels=(
        Panel(
            key="steps",
            title="Steps per second",
            description=(
                "By process and loop, the fastest ones. A line that ends is a loop that has ended or is stuck."
            ),
            kind="timeseries", unit="ops", width=8, good="high", least=0, needs="steps",
            targets=(
                Target(
                    expr=highest(
                        'sum by (instance, loop) (rate(jax_steps_total{@, loop=~"$loop"}[$__rate_interval]))'
                    ),
                    legend="{{instance}} {{loop}}",
                ),
            ),
        ),
        Panel(
            key="step_time",
            title="Step time",
            description=(
                "Median and 99th percentile, without evaluations and checkpoints between steps. If "
                "p99 is far above the median, some steps compile, wait for input, or wait for "
                "another process. Above its limit, a run's median process opens a ticket."
            ),
            kind="timeseries", unit="s", width=8, good="low", least=0, needs="steps",
            targets=(
                Target(
                    expr=highest('quantile_of(0.5, jax_step_seconds{@, loop=~"$loop"}, instance, loop)', 10),
                    legend="{{instance}} {{loop}} median",
                ),
                Target(
                    expr=highest('quantile_of(0.99, jax_step_seconds{@, loop=~"$loop"}, instance, loop)', 10),
                    legend="{{instance}} {{loop}} p99",
                ),
                Target(
                    expr=highest(
                        "quantile by (job, run_id, loop) "
                        '(0.5, job_instance_run_id_loop:jax_step_seconds:median30m{@, loop=~"$loop"})',
                        10,
                    ),
                    legend="{{job}} {{run_id}} {{loop}} median process, last 30 min",
                ),
                Target(
                    expr=highest(
                        "<JaxStepTimeRegression.factor> "
                        '* job_instance_run_id_loop:jax_step_seconds:median7d_median30m{@, loop=~"$loop"}',
                        10,
                    ),
                    legend="{{job}} {{run_id}} {{loop}} limit of that",
                ),
            ),
        ),
        Panel(
            key="input_wait",
            title="Waiting for input",
            description=(
                "Share of time that the program's thread waited for batches. Above a few percent, "
                "the input is too slow."
            ),
            kind="timeseries", alert="JaxInputBound", unit="percentunit", width=8,
            good="low", least=0, most=1, needs="input",
            targets=(
                Target(
                    expr=highest("sum by (instance, input) (rate(jax_input_wait_seconds_total{@}[$__rate_interval]))"),
                    legend="{{instance}} {{input}}",
                ),
                Target(
                    expr=highest("job_instance:jax_input_wait:ratio30m{@}"),
                    legend="{{instance}} of the time of steps, last 30 min",
                ),
            ),
        ),
        Panel(
            key="time_categories",
            title="Where the time goes",
            description=(
                "Share of the selected processes' time by category; each second is in exactly one. "
                "Select one process above to see its own."
            ),
            kind="timeseries", unit="percentunit", width=8, stacked=True, good="none", least=0, most=1,
            colors=CATEGORY_COLORS,
            targets=(
                Target(
                    expr=(
                        "sum by (category) (rate(jax_time_seconds_total{@}[$__rate_interval])) "
                        "/ on () group_left () (sum (rate(jax_time_seconds_total{@}[$__rate_interval])) > 0)"
                    ),
                    legend="{{category}}",
                ),
            ),
        ),
        Panel(
            key="checkpoints",
            title="Time of checkpoints",
            description=("Mean by operation. `save` is the time that a save blocks the program; "
                        "`save_async` is the whole time of one in the background. Unsaved work above its limit opens "
                        "a ticket."),
            kind="timeseries", unit="s", width=8, good="low", least=0, needs="checkpoints",
            targets=(
                Target(
                    expr=highest("mean_of(jax_checkpoint_seconds{@}, instance, operation)"),
                    legend="{{instance}} {{operation}}",
                ),
                Target(
                    expr='max by (job) (jax_run_lost_seconds{@, cause="at_risk"})', legend="{{job}} unsaved work"
                ),
                Target(
                    expr=highest(
                        "clamp(<JaxCheckpointWorkAtRisk.factor> * "
                        "job_instance:jax_run_unsaved_seconds:median1d_max{@}, "
                        "<JaxCheckpointWorkAtRisk.seconds>, <JaxCheckpointWorkAtRisk.most>)"
                    ),
                    legend="{{job}} limit of unsaved work",
                ),
            ),
        ),
        Panel(
            key="host",
            title="Arrays in the host's memory",
            description=(
                "Bytes of live arrays outside of a device's own memory, such as pinned_host. The "
                "finding `host_memory_leak` reports other growth on the host."
            ),
            kind="timeseries", unit="bytes", width=8, good="low", least=0, needs="trouble",
            no_value="All arrays are on their devices.",
            targets=(
                Target(
                    expr=highest("sum by (instance, space) (jax_live_array_space_bytes{@})"),
                    legend="{{instance}} {{space}}",
                ),
            ),
        ),
    ),
)  # fmt: skip
