"""Processes that are alive and get no further, as they themselves or their peers tell."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_LABELS = {"job": "train"}
_A = 'jax_findings{job="train", instance="a:9464", finding="stuck"}'
_B = 'jax_findings{job="train", instance="b:9464", finding="stuck"}'
_SAVING = 'jax_time_seconds_total{job="train", instance="a:9464", category="checkpoint"}'

ALERT = Alert(
    name="JaxProcessStuck",
    severity="critical",
    concern="availability",
    summary="Processes are alive but make no progress.",
    description=(
        "{{ $value | humanize }} processes of {{ $labels.job }} are reported as stuck: alive, not "
        "compiling, and without a step."
    ),
    expr=(
        "sum by (job) (\n"
        '  jax_findings{@, finding="stuck"}\n'
        "  unless on (job, instance)\n"
        '  sum by (job, instance) (rate(jax_time_seconds_total{@, category=~"checkpoint|eval"}[5m])) > 0.5\n'
        ") >= <processes>"
    ),
    for_="10m",
    thresholds={
        "processes": Threshold(
            value=1, unit="count", least=1, most=1_000_000,
            why="One process that does not enter a collective stops all that wait in it.",
        )
    },
    panel=("oncall", "stalled"),
    runbook=Runbook(
        meaning=(
            "The finding `stuck` is active: a process made no step for `stuck_steps` times its "
            "typical step time (20) and at least `stuck_seconds` (60), while nothing compiles; or "
            "process 0 has heard nothing from a process for that long. The processes themselves "
            "report it, also for slow steps and for loops that declare no steps; JaxStepsStalled "
            "detects the same from outside, by counters. Processes that spend their time in a "
            "checkpoint or an evaluation are ignored."
        ),
        impact=(
            "In a job of several processes, all wait for the stuck one, without an error and without "
            "an end. Accelerators are reserved but idle; work since the last checkpoint is at risk."
        ),
        diagnosis=(
            Step(
                do="See which processes report it, and since when.",
                query='jax_findings{@, finding="stuck"} > 0',
                answers=(
                    (
                        "all of the job",
                        "The text of the finding names the process that made fewer steps: look there first.",
                    ),
                    ("one", "That process, or one that it observes."),
                ),
            ),
            Step(
                do="Read the finding: where the main thread is, and which process is behind.",
                command="jaxobs explain http://HOST:9464",
                answers=(
                    ("`Process N made fewer steps`", "Process N is the cause, the others are victims."),
                    ("`inside JAX`", "It waits for the device or in a collective."),
                    ("a line of your own", "The program waits there: a lock, a queue, a network call, a debugger."),
                    ("no answer at all", ("A call that does not release the GIL blocks its "
                                         "interpreter: take native stacks.")),
                ),
            ),
            Step(
                do="Take the stacks of the process that is behind, twice, a minute apart.",
                command="py-spy dump --native --pid PID",
                answers=(
                    ("the same both times", "It hangs there."),
                    ("different", "It works, slowly: JaxStepTimeRegression."),
                ),
            ),
        ),
        mitigation=(
            "Keep the file `stuck-*.txt`; then stop the job and restart it from its last checkpoint.",
            "Processes of `jax.distributed` do not end on SIGTERM: use SIGKILL after the grace period.",
            "If the same host is named again, take it out of the job.",
            (
                'If long pauses are part of the program, wrap them in `jaxobs.phase("checkpoint")` '
                'or `("eval")`, or raise `stuck_steps`.'
            ),
        ),
        look_alikes=(
            ("A compilation that does not end", "something is in progress", "JaxCompilationStuck"),
            (
                "Programs differ between processes",
                "the finding `diverging_programs` is active as well",
                "JaxProgramDivergence",
            ),
            ("A process that is gone", "it does not respond", "JaxTargetDown"),
            (
                "A program past its last step that still exports or plots",
                "all processes made all of their steps",
                "nothing: wrap that part in `jaxobs.phase(\"eval\")`",
            ),
        ),
        evidence=(
            "The files `stuck-*.txt` of all processes that wrote one.",
            "The text of the finding, from `jaxobs explain`.",
            "The stacks from `py-spy dump --native`.",
        ),
        verify="The finding has ended: its number is 0 on the panel, and steps are counted again.",
        gpu=(
            "`CUDA_ERROR_INVALID_VALUE` in the log before the silence points to collectives in CUDA "
            "graphs: `--xla_gpu_enable_command_buffer=`."
        ),
        tpu=(
            "After a slice was replaced, stale `MEGASCALE_*` variables make the start hang: compare "
            "them with the scheduler's."
        ),
    ),
    cases=(
        Case(
            kind="firing", at="32m", series={_A: "0x19 1x60", _B: "0x80", _SAVING: "300x80"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(kind="pending", at="28m", series={_A: "0x19 1x60", _B: "0x80", _SAVING: "300x80"}),
        Case(
            kind="firing", at="32m", series={_A: "0x19 1x60", _B: "0x19 1x60"},
            fires=(Fired(labels=_LABELS, values=("2",)),),
        ),
        Case(kind="healthy", at="40m", series={_A: "0x80", _B: "0x80"}),
        Case(kind="healthy", at="50m", series={_A: "0x19 1x60", _SAVING: "0x18 0+60x61"}),
        Case(
            kind="counter_reset", at="45m", series={_A: "0x19 1x60", _SAVING: "3000x30 0x50"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(kind="recovering", at="50m", series={_A: "0x19 1x20 0x40"}),
        Case(kind="target_gone", at="60m", series={_A: "0x19 1x20 stale"}),
    ),
)  # fmt: skip
