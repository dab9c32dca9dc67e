"""Which processes a job has, and how often they begin anew."""

from __future__ import annotations

from jaxobs.rule_types import Group, Recording

_START = "jax_process_start_timestamp_seconds"

GROUP = Group(
    name="fleet",
    rules=(
        Recording(
            name="job:jax_processes_seen:count",
            expr=f"count by (job) ({_START}{{@}})",
            why="For JaxTargetDown and JaxJobAbsent: which jobs are observed, at one series for each of them.",
        ),
        Recording(
            name="job:jax_unfinished:bool",
            expr=(
                "count by (job) (jax_requests_in_flight{@}) > bool 0\n"
                'or max by (job) (jax_run_lost_seconds{@, cause="at_risk"} > bool 600)'
            ),
            why=(
                "For JaxJobAbsent: 1 for a job that serves requests, which never finishes, and for a run that has ten "
                "minutes of work unsaved, which nobody ends on purpose."
            ),
        ),
        Recording(
            name="job_instance:jax_process_restarts:bool",
            expr=f"{_START}{{@}} - last_over_time({_START}{{@}}[15m] offset 1m) > bool 10",
            why=(
                "For JaxFleetRestarts: 1 for one minute whenever another process answers at the same address. The "
                "start is told anew in each scrape and may differ by the clock's corrections, so `changes` is no use."
            ),
        ),
        Recording(
            name="job:jax_process_restarts:max1h",
            expr="max by (job) (sum_over_time(job_instance:jax_process_restarts:bool{@}[1h]))",
            why="For JaxFleetRestarts: how often the process that restarts most did so in the last hour.",
        ),
        Recording(
            name="job:jax_process_replacements:ratio1h",
            expr=f"count by (job) (last_over_time({_START}{{@}}[1h])) / count by (job) ({_START}{{@}}) - 1",
            why="For JaxFleetRestarts where a restart has a new address: processes that went for each that is there.",
        ),
        Recording(
            name="job_name:jaxobs_capability:min",
            expr="min by (job, name) (jaxobs_capability{@})",
            why="For JaxobsCapabilityLost: what each job's jaxobs can see, at one series for each, for the last week.",
        ),
    ),
)  # fmt: skip
