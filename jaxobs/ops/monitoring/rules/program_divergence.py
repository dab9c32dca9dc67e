"""Processes of one job that run different programs."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step

_SERIES = 'jax_findings{job="train", instance="a:9464", finding="diverging_programs"}'

ALERT = Alert(
    name="JaxProgramDivergence",
    severity="critical",
    concern="availability",
    summary="Processes of one job run different programs.",
    description=(
        "{{ $value | humanize }} findings report that processes of {{ $labels.job }} compiled "
        "different programs, or the same in another order."
    ),
    expr='sum by (job) (jax_findings{@, finding="diverging_programs"}) > 0',
    for_="2m",
    keep_firing_for="30m",
    panel=("oncall", "findings"),
    runbook=Runbook(
        meaning=(
            "The n-th program that spans processes differs between some process and process 0: "
            "another function, or the same one for other shapes. JAX does not check this. The "
            "processes compare the order of their programs through JAX's coordination service."
        ),
        impact=(
            "The numbers are wrong without an error, or the job hangs in a collective. You cannot "
            "trust anything trained since the difference began, nor any checkpoint since then."
        ),
        diagnosis=(
            Step(
                do="Read what differs: which process, the n-th program, its name and fingerprint on both sides.",
                command="jaxobs explain http://HOST_OF_PROCESS_0:9464",
                answers=(
                    (
                        "another function",
                        "A branch that only some processes take: `if process_index() == 0:` around jitted code.",
                    ),
                    ("the same function, another fingerprint", "Other shapes, flags or versions: see the next steps."),
                    (
                        "the same programs in another order",
                        "Something unordered: a set, threads, or files listed by the system.",
                    ),
                ),
            ),
            Step(
                do="See whether the processes run the same versions.",
                query="count by (job, jax, jaxlib, plugin, runtime) (jax_build_info{@})",
                answers=(
                    ("more than one row", "JaxVersionSkew: an incomplete deployment."),
                    ("one row", "The program or its data."),
                ),
            ),
            Step(
                do="See whether one of them makes no steps.",
                query="sum by (job, instance) (rate(jax_steps_total{@}[5m]))",
                answers=(
                    ("all 0", "It already hangs: JaxStepsStalled."),
                    ("above 0", "It continues with wrong numbers: stop it."),
                ),
            ),
            Step(
                do="Compare the event logs of the two processes for shapes.",
                command="jaxobs compare PROCESS_0.jsonl PROCESS_N.jsonl",
                answers=(
                    (
                        "other shapes of a batch",
                        "The input delivers unequal batches to the processes: drop the last short one on all.",
                    ),
                ),
            ),
        ),
        mitigation=(
            "Stop the job now: each further step makes it worse, or costs money without a result.",
            "Restart it from the last checkpoint before the first difference (its time is in the event log).",
            "Give all processes equal batches, the same image and flags, and run jitted code on all or on none.",
        ),
        look_alikes=(
            ("One process is ahead of another", "no finding: the comparison waits for both", "nothing is wrong"),
            (
                "Programs that a process runs on its own devices",
                "they do not span processes and are not compared",
                "nothing is wrong",
            ),
            ("Processes that wait without a difference", "the finding `stuck` alone", "JaxProcessStuck"),
        ),
        evidence=(
            "The whole text of the finding, of both processes.",
            "The event logs of process 0 and of the one named.",
            "The last checkpoint before it, and the first one after.",
        ),
        verify=(
            "After the restart, the finding does not reappear within the first steps, and all "
            "processes make the same number of steps."
        ),
        gpu=(
            "If compilation does not end on any process, they exchange autotuning results of unequal "
            "programs: JaxCompilationStuck."
        ),
        tpu=(
            "`scheckne: An unexpected leader shows up in the launch group` and "
            "`INCONSISTENT_TPU_PROGRAM` in the log mean the same."
        ),
    ),
    cases=(
        Case(
            kind="firing", at="23m", series={_SERIES: "_x20 1x60"},
            fires=(Fired(labels={"job": "train"}, values=("1",)),),
        ),
        Case(kind="pending", at="21m", series={_SERIES: "_x20 1x60"}),
        Case(kind="healthy", at="40m", series={_SERIES: "0x60"}),
        Case(kind="recovering", at="80m", series={_SERIES: "_x20 1x10 0x60"}),
        Case(kind="target_gone", at="80m", series={_SERIES: "_x20 1x10 stale"}),
    ),
    needs="several_processes",
)  # fmt: skip
