"""How long steps take, by process and by job, now and in the last week; which processes work without making any."""

from __future__ import annotations

from jaxobs.rule_types import Group, Recording

_MEAN = "job_instance_loop:jax_step_seconds:mean5m"
_OWN = "job_instance_loop:jax_step_seconds:median30m"
_JOB = "job_loop:jax_step_seconds:median30m"
_PACE = "job_instance:jax_step_seconds:median6h_max"
_TIME = "job_category:jax_time_seconds:rate5m"


def _none_in(window: str, seconds: int) -> str:
    steps = f"sum by (job, instance) (increase(jax_steps_total{{@}}[{window}])) == 0"
    return f"({steps} and {_PACE}{{@}} * 20 < {seconds})"


GROUP = Group(
    name="steps",
    rules=(
        Recording(
            name=_MEAN,
            expr="mean_of(jax_step_seconds{@}[5m], job, instance, loop)",
            why="Exact, where a quantile of the histogram could double within a bucket unseen.",
        ),
        Recording(
            name=_OWN,
            expr=f"quantile_over_time(0.5, {_MEAN}{{@}}[30m])",
            why="For JaxStraggler: the usual step time of a process; minutes with slow steps do not move it.",
        ),
        Recording(
            name=_JOB,
            expr=f"quantile by (job, loop) (0.5, {_OWN}{{@}})",
            why="For JaxStepTimeRegression and JaxStraggler: the usual step time of the process in the middle.",
        ),
        Recording(
            name="job_loop:jax_step_seconds:median7d_median30m",
            expr=(
                f"quantile_over_time(0.5, {_JOB}{{@}}[7d] offset 1h)\n"
                f"and count_over_time({_JOB}{{@}}[7d] offset 1h) >= 120"
            ),
            why=(
                "For JaxStepTimeRegression: what was usual. The last hour is left out, so that what is new is not "
                "compared with itself; fewer than two hours of steps tell nothing."
            ),
        ),
        Recording(
            name="job_instance_loop:jax_step_seconds:ratio_median30m",
            expr=(
                f"{_OWN}{{@}} / on (job, loop) group_left () ({_JOB}{{@}} > 0)\n"
                f"and {_OWN}{{@}} - on (job, loop) group_left () {_JOB}{{@}} > 0.01"
            ),
            why="For JaxStraggler: how much slower than the median process, from 10 ms on, as the finding has it.",
        ),
        Recording(
            name=_PACE,
            expr=f"max by (job, instance) (quantile_over_time(0.5, {_MEAN}{{@}}[6h]))",
            why="For the next one: what a step of its slowest loop takes; absent where it made none for six hours.",
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
                "For JaxStepsStalled: 1 for each process that made no step for 20 times as long as one takes, and "
                "passes its time in a step or waiting for input: not compiling, evaluating, saving, or done."
            ),
        ),
        Recording(
            name="job_instance:jax_input_wait:ratio30m",
            expr=(
                'sum by (job, instance) (rate(jax_time_seconds_total{@, category="input_wait"}[30m]))\n'
                '/ (sum by (job, instance) (rate(jax_time_seconds_total{@, category=~"step|input_wait"}[30m])) > 0)'
            ),
            why="For JaxInputBound and panels: what part of the time of steps is waiting for input.",
        ),
        Recording(
            name=_TIME,
            expr="sum by (job, category) (rate(jax_time_seconds_total{@}[5m]))",
            why="For the next one: hours of every process's categories would be too much to read each minute.",
        ),
        Recording(
            name="job:jax_goodput:ratio6h",
            expr=(
                f'sum by (job) (sum_over_time({_TIME}{{@, category=~"step|eval"}}[6h]))\n'
                f"/ (sum by (job) (sum_over_time({_TIME}{{@}}[6h])) > 0)\n"
                "and on (job) sum by (job) (rate(jax_steps_total{@}[30m])) > 0\n"
                "and on (job) max by (job) (time() - jax_process_start_timestamp_seconds{@}) > 7200"
            ),
            why="For JaxGoodputLow: of jobs that make steps now and are older than two hours.",
        ),
        Recording(
            name="job:jax_run_unsaved_seconds:max",
            expr='max by (job) (jax_run_lost_seconds{@, cause="at_risk"})',
            why="For JaxCheckpointWorkAtRisk: what would be lost if the run ended now.",
        ),
        Recording(
            name="job:jax_run_unsaved_seconds:median1d_max",
            expr=(
                "quantile_over_time(0.5, job:jax_run_unsaved_seconds:max{@}[1d] offset 1h)\n"
                "and count_over_time(job:jax_run_unsaved_seconds:max{@}[1d] offset 1h) >= 30"
            ),
            why="For JaxCheckpointWorkAtRisk: what is usually unsaved, which is half of what lies between checkpoints.",
        ),
    ),
)  # fmt: skip
