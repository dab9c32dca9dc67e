"""How long steps take, by process and by job, now and in the last week; which processes work without making any."""

from __future__ import annotations

from jaxobs.ops.monitoring.promql import MADE_STEPS, RUN
from jaxobs.ops.monitoring.rule_types import Group, Recording

_MEAN = "job_instance_loop:jax_step_seconds:mean5m"
_OWN = "job_instance_loop:jax_step_seconds:median30m"
_IN_RUN = "job_instance_run_id_loop:jax_step_seconds:median30m"
_RUN = "job_run_id_loop:jax_step_seconds:median30m"
_OTHER_SHAPE = 'jax_compilations_total{@, cause!="first_call", function!="<eager>"}'
_START = "jax_process_start_timestamp_seconds"
_PACE = "job_instance:jax_step_seconds:median6h_max"
_TIME = "job_category:jax_time_seconds:rate5m"
_KNOWN = f'sum_over_time({_TIME}{{@, category!="unattributed"}}[6h])'


def _none_in(window: str, seconds: int) -> str:
    steps = f"sum by (job, instance) (increase(jax_steps_total{{@}}[{window}])) == 0"
    return f"({steps} and {_PACE}{{@}} * 20 < {seconds})"


GROUP = Group(
    name="steps",
    rules=(
        Recording(
            name=_MEAN,
            expr="mean_of(jax_step_seconds{@}[5m], job, instance, loop)",
            why="Exact, whereas a quantile of the histogram could double within a bucket unnoticed.",
        ),
        Recording(
            name=_OWN,
            expr=f"quantile_over_time(0.5, {_MEAN}{{@}}[30m])",
            why=("For JaxStraggler: the typical step time of a process; minutes with slow steps do "
                "not change it."),
        ),
        Recording(
            name=RUN,
            expr=(
                "group by (job, instance, run_id) (\n"
                '  jax_run_info{@, run_id!=""}\n'
                '  or label_replace(jax_run_info{@, run_id=""}, "run_id", "$1", "instance", "(.*)")\n'
                ")"
            ),
            why=(
                "For rules that keep runs under one name apart: the run of each process, which is its address if "
                "it has no `run_id` and no peers."
            ),
        ),
        Recording(
            name="job_instance:jax_run_over:bool",
            expr=(
                'group by (job, instance) (last_over_time(jax_run_info{@, run_id!=""}[6h]))\n'
                "unless on (job, instance) (\n"
                f"  last_over_time({RUN}{{@}}[6h]) and on (job, run_id) {RUN}{{@}}\n"
                ")"
            ),
            why="For JaxTargetDown: processes of named runs that ended, while others under the job's name go on.",
        ),
        Recording(
            name=_IN_RUN,
            expr=(
                f"{_OWN}{{@}} * on (job, instance) group_left (run_id) {RUN}{{@}}\n"
                f"or {_OWN}{{@}} unless on (job, instance) last_over_time({RUN}{{@}}[35m])"
            ),
            why="For the next ones: that, with the run of the process. Different runs may share the name of a job.",
        ),
        Recording(
            name=_RUN,
            expr=f"quantile by (job, run_id, loop) (0.5, {_IN_RUN}{{@}})",
            why="For JaxStepTimeRegression and JaxStraggler: the typical step time of the run's median process.",
        ),
        Recording(
            name="job_instance_run_id_loop:jax_step_seconds:median7d_median30m",
            labels={"instance": "all"},
            expr=(
                f"quantile_over_time(0.5, {_RUN}{{@}}[7d] offset 1h)\n"
                f"and count_over_time({_RUN}{{@}}[7d] offset 1h) >= 120"
            ),
            why=(
                "For JaxStepTimeRegression and its panel: the baseline. The last hour is left out, so that new "
                "values are not compared with themselves; fewer than two hours of steps are too few."
            ),
        ),
        Recording(
            name="job_run_id_loop:jax_step_seconds:ratio45m_recompiled",
            expr=(
                f"{_RUN}{{@}} / ({_RUN}{{@}} offset 45m > 0) > 1.05\n"
                f"and on (job, run_id) ({RUN}{{@}} and on (job, instance) (\n"
                f"  ({_OTHER_SHAPE} unless {_OTHER_SHAPE} offset 1h)\n"
                f"    and on (job, instance) ({_START}{{@}} offset 1h or (time() - {_START}{{@}} < 3600))\n"
                f"  or increase({_OTHER_SHAPE}[1h]) > 0\n"
                "))"
            ),
            why=(
                "For JaxStepTimeRegression: steps that became longer when their function was compiled for another "
                "shape, as in a stage of the training with longer sequences. The program changed, not the machine."
            ),
        ),
        Recording(
            name="job_instance_run_id_loop:jax_step_seconds:ratio_median30m",
            expr=(
                f"{_IN_RUN}{{@}} / on (job, run_id, loop) group_left () ({_RUN}{{@}} > 0)\n"
                f"and {_IN_RUN}{{@}} - on (job, run_id, loop) group_left () {_RUN}{{@}} > 0.01"
            ),
            why="For JaxStraggler: how much slower than the run's median process, from 10 ms on, like the finding.",
        ),
        Recording(
            name=_PACE,
            expr=f"max by (job, instance) (quantile_over_time(0.5, {_MEAN}{{@}}[6h]))",
            why=("For the next one: the time of a step in its slowest loop; absent if it made none "
                "for six hours."),
        ),
        Recording(
            name="job_instance:jax_steps_stalled:bool",
            expr=(
                f"(({_none_in('15m', 900)}\n  or {_none_in('2h', 7200)})\n"
                "  and on (job, instance)\n"
                '  sum by (job, instance) (rate(jax_time_seconds_total{@, category=~"step|input_wait"}[10m])) > 0.5)\n'
                "+ 1"
            ),
            why=(
                "For JaxStepsStalled: 1 for each process that made no step for 20 times the time of "
                "a step, and spends its time in a step or waiting for input: not compiling, "
                "evaluating, saving, or finished."
            ),
        ),
        Recording(
            name="job_instance:jax_input_wait:ratio30m",
            expr=(
                'sum by (job, instance) (rate(jax_time_seconds_total{@, category="input_wait"}[30m]))\n'
                '/ (sum by (job, instance) (rate(jax_time_seconds_total{@, category=~"step|input_wait"}[30m])) > 0)\n'
                "and on (job, instance) jax_steps_total{@} offset 30m > 0"
            ),
            why=(
                "For JaxInputBound and panels: the share of the time of steps that is waiting for input, of processes "
                "that made steps half an hour ago: a data set that is downloaded before the first step does not count."
            ),
        ),
        Recording(
            name=_TIME,
            expr=(
                "sum by (job, category) (\n"
                "  rate(jax_time_seconds_total{@}[5m])\n"
                f"  and on (job, instance) ({MADE_STEPS})\n"
                ")"
            ),
            why=(
                "For the next one: hours of every process's categories would be too much to read each minute. "
                "Only of processes that make steps: neither a start nor a pause of five minutes counts."
            ),
        ),
        Recording(
            name="job_instance:jax_goodput:ratio6h",
            labels={"instance": "all"},
            expr=(
                f'sum by (job) (sum_over_time({_TIME}{{@, category=~"step|eval"}}[6h]))\n'
                f"/ (sum by (job) ({_KNOWN}) > 0)\n"
                f"and on (job) sum by (job) ({_KNOWN}) > 0.5 * sum by (job) (sum_over_time({_TIME}{{@}}[6h]))\n"
                "and on (job) sum by (job) (rate(jax_steps_total{@}[30m])) > 0\n"
                f"and on (job) max by (job) (count_over_time({_TIME}{{@}}[6h])) > 90"
            ),
            why=(
                "For JaxGoodputLow and its panel: of jobs that make steps now and trained for 90 of these minutes. "
                "Time whose use is unknown does not count. If that is most of it, as with a server's calls, nothing "
                "does."
            ),
        ),
        Recording(
            name="job:jax_run_unsaved_seconds:max",
            expr='max by (job) (jax_run_lost_seconds{@, cause="at_risk"})',
            why="For JaxCheckpointWorkAtRisk: what would be lost if the run ended now.",
        ),
        Recording(
            name="job_instance:jax_run_unsaved_seconds:median1d_max",
            labels={"instance": "all"},
            expr=(
                "quantile_over_time(0.5, job:jax_run_unsaved_seconds:max{@}[1d] offset 1h)\n"
                "and count_over_time(job:jax_run_unsaved_seconds:max{@}[1d] offset 1h) >= 30"
            ),
            why=("For JaxCheckpointWorkAtRisk and its panel: the typical unsaved work, which is half of the "
                "interval between checkpoints."),
        ),
    ),
)  # fmt: skip
