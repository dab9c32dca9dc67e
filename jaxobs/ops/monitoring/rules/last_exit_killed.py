"""A process whose predecessor was killed, or ran out of memory, before it could be scraped."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_LABELS = {"job": "train", "instance": "a:9464", "run_id": "r", "last_exit": "killed"}


def _process(last_exit: str = "killed", values: str = "_x30 1x100", start: str = "_x30 1800x100") -> dict[str, str]:
    whose = 'job="train", instance="a:9464"'
    return {
        f'jax_run_info{{{whose}, run_id="r", last_exit="{last_exit}"}}': values,
        f"jax_process_start_timestamp_seconds{{{whose}}}": start,
    }


ALERT = Alert(
    name="JaxLastExitKilled",
    severity="warning",
    concern="availability",
    summary="The process before this one was killed or ran out of memory.",
    description=(
        "The process before {{ $labels.instance }} ({{ $labels.job }}) ended with {{ $labels.last_exit }}; this one "
        "has run for {{ $value | humanizeDuration }}."
    ),
    expr=(
        "(time() - jax_process_start_timestamp_seconds{@} < <seconds>)\n"
        "* on (job, instance) group_left (run_id, last_exit)\n"
        'jax_run_info{@, last_exit=~"killed|out_of_memory"}'
    ),
    for_="2m",
    thresholds={
        "seconds": Threshold(
            value=3600, unit="seconds", least=300, most=86_400,
            why="The new process says it for as long as it lives; an hour is enough for a ticket to be written.",
        )
    },
    panel=("fleet", "restarts"),
    runbook=Runbook(
        meaning=(
            "A process that started within the last hour found that the one before it, at the same place, had not "
            "ended by itself: `out_of_memory`, of the device or by the kernel, or `killed`: by SIGKILL, by the kernel "
            "in a container of its own, or with its machine. It knows from the file `jaxobs-end-*.json` next to the "
            "event log, so a death between two scrapes is reported as well. A signal that the process noticed, such "
            "as a preemption's SIGTERM, does not count."
        ),
        impact="Work since the last checkpoint was lost, and it will happen again if the cause is still there.",
        diagnosis=(
            Step(
                do="Read what the process wrote before it ended.",
                command="ls -t out-of-memory-*.txt last-minutes-*.txt | head -n 2 | xargs cat",
                answers=(
                    ("an out-of-memory report", "The device's memory: JaxOutOfMemory has the steps."),
                    ("nothing", "It had no time to write: see the next step."),
                ),
            ),
            Step(
                do="See how its memory on the host had grown.",
                query='max by (job, instance) (jax_findings{@, finding="host_memory_leak"})',
                answers=(("1", "JaxHostMemoryGrowth: the kernel killed it."), ("0", "Ask the scheduler.")),
            ),
        ),
        mitigation=(
            "If the host ran out of memory, give the container more, or fix what grows.",
            "If a probe killed it, let it wait for the first compilation.",
        ),
        look_alikes=(
            ("A preemption", "`last_exit` is `signal`", "nothing: the run resumes"),
            ("Again and again", "several restarts within an hour", "JaxCrashLoop"),
        ),
        evidence=("The files from the event log's directory.", "`dmesg -T` of the host, and the scheduler's events."),
        verify="The process has lived longer than the one before it, through the same work.",
    ),
    cases=(
        Case(kind="firing", at="32m", series=_process(), fires=(Fired(labels=_LABELS, values=("2m 0s",)),)),
        Case(kind="pending", at="31m", series=_process()),
        Case(kind="healthy", at="60m", series=_process("signal")),
        Case(kind="healthy", at="60m", series=_process("")),
        Case(
            kind="firing", at="89m", series=_process("out_of_memory"),
            fires=(Fired(labels={**_LABELS, "last_exit": "out_of_memory"}, values=("59m 0s",)),),
        ),
        Case(kind="recovering", at="91m", series=_process()),
        Case(kind="target_gone", at="60m", series=_process(values="_x30 1x10 stale", start="_x30 1800x10 stale")),
    ),
)  # fmt: skip
