"""Processes of a job that are not seen."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step

_LABELS = {"job": "train"}


def _job(seen: int, last: str = "4x90", told: int = 4, run: str = "") -> dict[str, str]:
    """Processes that tell how many they are, and their run; the last of them as given."""
    whose = [f'job="train", instance="{run}{number}:9464"' for number in range(seen)]
    names = [f"jax_processes{{{each}}}" for each in whose]
    runs = {f'jax_run_info{{{each}, run_id="{run}", last_exit=""}}': "1x90" for each in whose if run}
    return {**dict.fromkeys(names[:-1], f"{told}x90"), names[-1]: last, **runs}


ALERT = Alert(
    name="JaxProcessCountMismatch",
    severity="warning",
    concern="availability",
    summary="Some processes of a job are not visible.",
    description=(
        "{{ $value | humanize }} processes of {{ $labels.job }} are not visible: JAX counts more "
        "than Prometheus scrapes."
    ),
    expr="max by (job) (job_run_id:jax_processes_missing:count{@}) > 0",
    for_="10m",
    panel=("fleet", "processes"),
    runbook=Runbook(
        meaning=(
            "The processes of a run report that there are more of them (`jax.process_count()`) than Prometheus "
            "scrapes. Each run counts for itself (`run_id` of `jax_run_info`: the setting, or the address of JAX's "
            "coordinator), and independent processes, such as replicas, do not count."
        ),
        impact=(
            "Either a process died, and the others wait for it or will end; or it is alive but not "
            "observed, so problems there go unnoticed."
        ),
        diagnosis=(
            Step(
                do="See which process indices exist.",
                query="jax_process_info{@}",
                answers=(
                    ("an index is missing", "Find its host in the scheduler, and continue there."),
                    ("an index appears twice", "Two runs have the same `job` label: give each its own."),
                ),
            ),
            Step(
                do="See whether targets do not respond.",
                query="up{@} == 0",
                answers=(
                    ("rows", "JaxTargetDown: the process or its endpoint is gone."),
                    (
                        "nothing",
                        (
                            "Prometheus does not know the target: its discovery, or a port that "
                            "another process on the host took."
                        ),
                    ),
                ),
            ),
            Step(
                do="See whether the job makes steps.",
                query="sum by (job, instance) (rate(jax_steps_total{@}[5m]))",
                answers=(
                    ("above 0", "All processes are alive, and one is not observed: this is not urgent."),
                    ("0", "A process died: JaxStepsStalled."),
                ),
            ),
            Step(
                do="Ask the missing process itself, on its host.",
                command="curl -s http://127.0.0.1:9464/metrics | head; ss -ltnp | grep python",
                answers=(
                    ("it responds", "The network, or the discovery."),
                    ("another port", "Several processes on one host: each needs its own port in the discovery."),
                    ("no process", "It died: its log and `dmesg` say why."),
                ),
            ),
        ),
        mitigation=(
            ("If a process died, stop the job and restart it from its last checkpoint; the others do "
            "not end on SIGTERM."),
            "If it is not observed, correct the discovery; `jaxobs generate kubernetes` writes one for pods.",
        ),
        look_alikes=(
            ("A known target that does not respond", "`up` is 0", "JaxTargetDown"),
            (
                "A job that is just starting",
                "processes started one after the other",
                "wait: the alert allows 10 minutes for that",
            ),
        ),
        evidence=(
            "The list of process indices.",
            "The log of the missing process.",
            "Prometheus' page of targets.",
        ),
        verify="As many processes are visible as JAX counts.",
    ),
    cases=(
        Case(kind="firing", at="15m", series=_job(3), fires=(Fired(labels=_LABELS, values=("1",)),)),
        Case(kind="pending", at="8m", series=_job(3)),
        Case(kind="healthy", at="30m", series=_job(4)),
        Case(kind="healthy", at="30m", series=_job(3, "1x90", told=1)),
        Case(
            kind="firing", at="15m", series=_job(4, run="r") | _job(3, run="s"),
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(kind="healthy", at="30m", series=_job(4, run="r") | _job(4, run="s")),
        Case(kind="recovering", at="60m", series=_job(4, "_x40 4x40")),
        Case(kind="target_gone", at="60m", series=dict.fromkeys(_job(3), "4x40 stale")),
    ),
    needs="several_processes",
)  # fmt: skip
