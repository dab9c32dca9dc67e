"""Which processes a job has, and how often they begin again."""

from __future__ import annotations

from jaxobs.ops.monitoring.promql import PROBES
from jaxobs.ops.monitoring.rule_types import Group, Recording

_START = "jax_process_start_timestamp_seconds"

_IN_RUN = (
    "(jax_processes{@} > 1) * on (job, instance) group_left (run_id) jax_run_info{@}\n"
    "    or on (job, instance) (jax_processes{@} > 1)"
)
"""Processes of jobs of several, with their run where it is known."""

GROUP = Group(
    name="fleet",
    rules=(
        Recording(
            name="job:jax_processes_seen:count",
            expr=f"count by (job) ({_START}{{@}})",
            why="For JaxTargetDown and JaxJobAbsent: which jobs are observed, with one series each.",
        ),
        Recording(
            name="job:jax_unfinished:bool",
            expr=(
                f'sum by (job) (increase(jax_requests_total{{@, route!~"{PROBES}"}}[5m])) > bool 0\n'
                'or max by (job) (jax_run_lost_seconds{@, cause="at_risk"} > bool 600)'
            ),
            why=(
                "For JaxJobAbsent: 1 for a job that answered requests in the last five minutes, which nobody stops, "
                "unlike one that is scaled to zero; and for a run with ten minutes of unsaved work, which nobody ends "
                "on purpose."
            ),
        ),
        Recording(
            name="job:jax_serving:bool",
            expr="group by (job) (jax_requests_in_flight{@})",
            why="For JaxTargetDown and JaxTrainingGone: 1 for a job that serves requests.",
        ),
        Recording(
            name="job:jax_trained:bool",
            expr=(
                "group by (job) (\n"
                "  increase(jax_steps_total{@}[5m]) > 0\n"
                "  and on (job, instance) (\n"
                f"    time() - {_START}{{@}} > 1800 and on (job, instance) jax_processes{{@}} > 1\n"
                f"    or time() - {_START}{{@}} > 21600)\n"
                "  unless on (job, instance)\n"
                '  sum by (job, instance) (rate(jax_time_seconds_total{@, category=~"checkpoint|eval"}[5m])) > 0\n'
                ")\n"
                f"or 0 * group by (job) ({_START}{{@}})"
            ),
            why=(
                "For JaxTrainingGone: 1 for a job that makes steps and neither saves nor evaluates, as it would before "
                "it ends, and is older than half an hour; six hours if it has one process alone, which people cancel "
                "at any time."
            ),
        ),
        Recording(
            name="job_instance:jax_process_restarts:bool",
            expr=(
                f"{_START}{{@}} - last_over_time({_START}{{@}}[8m] offset 1m) > bool 10\n"
                'unless on (job, instance) jax_run_info{@, last_exit=~"normal|signal"}'
            ),
            why=(
                "For JaxCrashLoop and JaxFleetRestarts: 1 for one minute whenever another process answers at the same "
                "address within eight minutes, unless the one before it is known to have ended normally. Each scrape "
                "reports the start time again, and clock corrections may change it, so `changes` is of no use."
            ),
        ),
        Recording(
            name="job:jax_process_restarts:max1h",
            expr="max by (job) (sum_over_time(job_instance:jax_process_restarts:bool{@}[1h]))",
            why="For the next one: how often the most restarted process restarted in the last hour.",
        ),
        Recording(
            name="job:jax_crashes:max1h",
            expr=(
                "job:jax_process_restarts:max1h{@} > 0\n"
                "or count by (job) (\n"
                '  last_over_time(jax_run_info{@, last_exit=~"error|killed|out_of_memory"}[1h])\n'
                '  and on (job, instance) last_over_time(jax_process_info{@, process_index="0"}[1h])\n'
                ') / on (job) count by (job) (jax_process_info{@, process_index="0"})\n'
                "or job:jax_process_restarts:max1h{@}"
            ),
            why=(
                "For JaxCrashLoop and JaxFleetRestarts: that; or, if each restart has a new address, the processes "
                "that found that the one before them had crashed."
            ),
        ),
        Recording(
            name="job_instance:jax_process_preemptions:bool",
            expr=(
                f"{_START}{{@}} - last_over_time({_START}{{@}}[8m] offset 1m) > bool 10\n"
                'and on (job, instance) jax_run_info{@, last_exit="signal"}'
            ),
            why="For the next one: 1 for one minute whenever a process follows one that a signal ended there.",
        ),
        Recording(
            name="job_instance:jax_preemptions:max1h",
            labels={"instance": "all"},
            expr=(
                "(max by (job) (sum_over_time(job_instance:jax_process_preemptions:bool{@}[1h])) > 0\n"
                "or count by (job) (\n"
                '  last_over_time(jax_run_info{@, last_exit="signal"}[1h])\n'
                '  and on (job, instance) last_over_time(jax_process_info{@, process_index="0"}[1h])\n'
                ') / on (job) count by (job) (jax_process_info{@, process_index="0"}))\n'
                "unless on (job) job:jax_serving:bool{@}"
            ),
            why=(
                "For JaxPreemptedOften: how often a run was ended by a signal in the last hour, at one address or at "
                "a new one each time. Replicas of a service come and go."
            ),
        ),
        Recording(
            name="job:jax_idle_service:bool",
            expr=(
                "job:jax_serving:bool{@}\n"
                f'and on (job) sum by (job) (increase(jax_requests_total{{@, route!~"{PROBES}"}}[1h])) == 0\n'
                f"and on (job) max by (job) (time() - {_START}{{@}}) > 5400\n"
                f"or 0 * group by (job) ({_START}{{@}})"
            ),
            why=(
                "For JaxIdleServiceGone: 1 for a service that had requests and has had none for an hour. An autoscaler "
                "that scales to zero would have removed it by then."
            ),
        ),
        Recording(
            name="job_run_id:jax_processes_missing:count",
            expr=(
                f"max by (job, run_id) ({_IN_RUN})\n"
                f"- count by (job, run_id) ({_IN_RUN})"
            ),
            why=(
                "For JaxProcessCountMismatch: processes that JAX counts and Prometheus does not see, of each run: "
                "two runs under one name are two."
            ),
        ),
        Recording(
            name="job:jax_serving_processes:count",
            expr="count by (job) (jax_requests_in_flight{@})",
            why="For JaxReplicasLost: the replicas of a service.",
        ),
        Recording(
            name="job:jax_requests_per_process:rate5m",
            expr=(
                "sum by (job) (rate(jax_requests_total{@}[5m])) / on (job) (job:jax_serving_processes:count{@} > 0)"
            ),
            why="For JaxReplicasLost: how busy the replicas of a service are.",
        ),
        Recording(
            name="job:jax_serving_processes:lost10m",
            expr="job:jax_serving_processes:count{@} offset 10m - job:jax_serving_processes:count{@}",
            why="For JaxReplicasLost: by how many the replicas became fewer within ten minutes.",
        ),
        Recording(
            name="job:jax_serving_processes:max1h",
            expr="max_over_time(job:jax_serving_processes:count{@}[1h])",
            why="For JaxReplicasLost: the most replicas of the last hour.",
        ),
        Recording(
            name="job:jax_requests_per_process:ratio2h",
            expr=(
                "job:jax_requests_per_process:rate5m{@} offset 10m\n"
                "/ (quantile_over_time(0.5, job:jax_requests_per_process:rate5m{@}[2h] offset 10m) > 0)"
            ),
            why="For JaxReplicasLost: how busy the replicas were ten minutes ago, against the two hours before.",
        ),
        Recording(
            name="job_name:jaxobs_capability:min",
            expr="min by (job, name) (jaxobs_capability{@})",
            why=("For JaxobsCapabilityLost: what each job's jaxobs can observe, with one series each, "
                "for the last week."),
        ),
    ),
)  # fmt: skip
