"""Processes of a job that are not seen."""

from __future__ import annotations

from jaxobs.rule_types import Alert, Case, Fired, Runbook, Step

_LABELS = {"job": "train"}


def _job(seen: int, last: str = "4x90", told: int = 4) -> dict[str, str]:
    """Processes that tell how many they are; the last of them as given."""
    names = [f'jax_processes{{job="train", instance="{number}:9464"}}' for number in range(seen)]
    return {**dict.fromkeys(names[:-1], f"{told}x90"), names[-1]: last}


ALERT = Alert(
    name="JaxProcessCountMismatch",
    severity="warning",
    concern="availability",
    summary="Not all processes of a job are seen.",
    description=(
        "{{ $value | humanize }} processes of {{ $labels.job }} are not seen: JAX counts more than Prometheus scrapes."
    ),
    expr="max by (job) (jax_processes{@}) - count by (job) (jax_processes{@} > 1) > 0",
    for_="10m",
    panel=("fleet", "processes"),
    runbook=Runbook(
        meaning=(
            "The job's processes say that there are more of them (`jax.process_count()`) than Prometheus gets answers "
            "from. "
            "Processes that stand alone do not count, so replicas under one label are no mismatch."
        ),
        impact=(
            "Either a process died, and the others wait for it or will end; or it lives and is not observed, so that "
            "what goes "
            "wrong there is not seen."
        ),
        diagnosis=(
            Step(
                do="See which process indices are there.",
                query="jax_process_info{@}",
                answers=(
                    ("an index is missing", "Find its host in the scheduler, and go on there."),
                    ("indices twice", "Two runs have the same `job` label: give each its own."),
                ),
            ),
            Step(
                do="See whether targets do not answer.",
                query="up{@} == 0",
                answers=(
                    ("rows", "JaxTargetDown: the process or its endpoint is gone."),
                    (
                        "nothing",
                        (
                            "Prometheus does not know of the target: its discovery, or a port that another process of "
                            "the host took."
                        ),
                    ),
                ),
            ),
            Step(
                do="See whether the job makes steps.",
                query="sum by (job, instance) (rate(jax_steps_total{@}[5m]))",
                answers=(
                    ("above 0", "All processes live, and one is not observed: no hurry."),
                    ("0", "A process died: JaxStepsStalled."),
                ),
            ),
            Step(
                do="Ask the missing process itself, on its host.",
                command="curl -s http://127.0.0.1:9464/metrics | head; ss -ltnp | grep python",
                answers=(
                    ("it answers", "The network, or the discovery."),
                    ("another port", "Several processes on one host: each needs its own port in the discovery."),
                    ("no process", "It died: its log and `dmesg` tell why."),
                ),
            ),
        ),
        mitigation=(
            "If a process died, stop the job and start it from its last checkpoint; the others do not end by SIGTERM.",
            "If it is not observed, correct the discovery; `jaxobs generate kubernetes` writes one for pods.",
        ),
        look_alikes=(
            ("A target that is known and does not answer", "`up` is 0", "JaxTargetDown"),
            (
                "A job that is just starting",
                "processes came one after the other",
                "wait: 10 minutes are allowed for it",
            ),
        ),
        evidence=(
            "The list of process indices.",
            "The log of the process that is missing.",
            "Prometheus' page of targets.",
        ),
        verify="As many processes are seen as JAX counts.",
    ),
    cases=(
        Case(kind="firing", at="15m", series=_job(3), fires=(Fired(labels=_LABELS, values=("1",)),)),
        Case(kind="pending", at="8m", series=_job(3)),
        Case(kind="healthy", at="30m", series=_job(4)),
        Case(kind="healthy", at="30m", series=_job(3, "1x90", told=1)),
        Case(kind="recovering", at="60m", series=_job(4, "_x40 4x40")),
        Case(kind="target_gone", at="60m", series=dict.fromkeys(_job(3), "4x40 stale")),
    ),
    needs="several_processes",
)  # fmt: skip
