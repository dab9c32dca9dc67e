"""Processes that made steps, are at work, and make none."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step

_LABELS = {"job": "train"}


def _process(instance: str, steps: str, seconds: str, working: str, category: str = "step") -> dict[str, str]:
    whose = f'job="train", instance="{instance}:9464"'
    return {
        f'jax_steps_total{{{whose}, loop="train"}}': steps,
        f'jax_step_seconds_count{{{whose}, loop="train"}}': steps,
        f'jax_step_seconds_sum{{{whose}, loop="train"}}': seconds,
        f'jax_time_seconds_total{{{whose}, category="{category}"}}': working,
    }


_HUNG = _process("a", "0+6x30 180x90", "0+60x30 1800x90", "0+60x120") | _process(
    "b", "0+6x30 180x90", "0+60x30 1800x90", "0+60x120", "input_wait"
)

ALERT = Alert(
    name="JaxStepsStalled",
    severity="critical",
    concern="availability",
    summary="Active processes no longer make steps.",
    description=(
        "{{ $value | humanize }} processes of {{ $labels.job }} are in a step, or wait for input, "
        "and have made no step for many times as long as one takes."
    ),
    expr="count by (job) (job_instance:jax_steps_stalled:bool{@}) > 0",
    for_="5m",
    panel=("oncall", "stalled"),
    runbook=Runbook(
        meaning=(
            "Some process made no step for a quarter of an hour (two hours if steps are slow), which "
            "is at least 20 times the time of a step, and spent that time in a step or waiting for "
            "input. Compiling, evaluating, saving and finished programs do not count. Steps of more "
            "than six minutes are not judged here; the finding `stuck` has no such limit."
        ),
        impact=(
            "The job does nothing and keeps its accelerators. Collectives wait forever without an "
            "error: nothing ends by itself. Work since the last checkpoint is lost when the job is "
            "stopped."
        ),
        diagnosis=(
            Step(
                do="Find the process that made the fewest steps: the others wait for it.",
                query="bottomk(5, sum by (job, instance) (jax_steps_total{@}))",
                answers=(
                    ("one is behind", "Go to its host, and look at its stacks as below."),
                    (
                        "all have made the same number",
                        "One did not enter the last collective, or all wait for something shared.",
                    ),
                ),
            ),
            Step(
                do="See whether all of the job's processes exist.",
                query="max by (job) (jax_processes{@}) - count by (job) (jax_processes{@})",
                answers=(
                    ("above 0", "A peer died and the others wait for it: find the first death in the logs."),
                    ("0", "All are alive: continue."),
                ),
            ),
            Step(
                do="Read the report that jaxobs wrote about the stuck process: the stacks of all threads.",
                command="ls -t stuck-*.txt | head -n 1 | xargs cat",
                answers=(
                    ("a line of the data loader", "The loader or its storage hangs."),
                    ("inside JAX", "It waits for the device or in a collective: look at the process that is behind."),
                    ("no such file", "Take the stacks manually on the host: `py-spy dump --native --pid PID`."),
                ),
            ),
            Step(
                do="See whether the input delivers batches.",
                query="sum by (job, instance, input) (rate(jax_input_batches_total{@}[5m]))",
                answers=(("0 on some process", "Its input: storage, a worker that died, an empty shard."),),
            ),
            Step(
                do="See whether a device failed, and whether programs differ.",
                query='(accelerator_up{@} == 0) or (jax_findings{@, finding="diverging_programs"} > 0)',
                answers=(
                    ("`accelerator_up`", "JaxDeviceLost."),
                    ("`diverging_programs`", "JaxProgramDivergence: stop the job, its numbers are wrong."),
                ),
            ),
        ),
        mitigation=(
            (
                "Keep the stacks of the process that is behind and of one other; then stop the job "
                "and restart it from its last checkpoint."
            ),
            ("SIGTERM does not end a `jax.distributed` process: send it, wait for the grace period, "
            "then send SIGKILL."),
            "If it was one host, take that host out before the restart.",
            "If it was the input, repair the storage or the shard first: it would hang again.",
        ),
        look_alikes=(
            ("A long compilation", "`jax_compilations_in_progress` is not 0", "JaxCompilationStuck"),
            (
                "A long checkpoint or evaluation",
                "the time goes into `checkpoint` or `eval`",
                "no stall; this alert does not count it",
            ),
            ("Steps that are slow, but end", "`jax_steps_total` rises", "JaxStepTimeRegression"),
            ("A process that is gone", "`up` is 0", "JaxTargetDown"),
        ),
        evidence=(
            "The reports `stuck-*.txt`, or stacks of two processes.",
            "Steps by process, from the first query.",
            "The last 100 lines of the log of the process that is behind, and `dmesg` of its host.",
        ),
        verify="`jax_steps_total` of all processes rises, and the panel is 0.",
        gpu="The GPUs show 100 % utilization while they wait in a collective: that does not indicate work.",
        tpu="Megascale writes a digest after 5 minutes: look for `Megascale detects a hang` in the logs.",
    ),
    cases=(
        Case(kind="firing", at="52m", series=_HUNG, fires=(Fired(labels=_LABELS, values=("2",)),)),
        Case(kind="pending", at="48m", series=_HUNG),
        Case(
            kind="firing", at="52m", series=_process("a", "0+6x30 180x90", "0+60x30 1800x90", "0+60x120"),
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(kind="healthy", at="60m", series=_process("a", "0+6x120", "0+60x120", "0+60x120")),
        Case(
            kind="healthy", at="60m",
            series=_process("a", "0+6x30 180x90", "0+60x30 1800x90", "0+60x120", "checkpoint"),
        ),
        Case(kind="healthy", at="60m", series=_process("a", "0+6x30 180x90", "0+60x30 1800x90", "0+60x120", "compile")),
        Case(
            kind="job_finished", at="60m",
            series=_process("a", "0+6x30 180x90", "0+60x30 1800x90", "0+60x120", "idle"),
        ),
        Case(kind="healthy", at="80m", series=_process("a", "0+1x30 30x90", "0+60x30 1800x90", "0+60x120")),
        Case(
            kind="recovering", at="75m",
            series=_process("a", "0+6x30 180x30 186+6x60", "0+60x30 1800x30 1860+60x60", "0+60x130"),
        ),
        Case(
            kind="target_gone", at="75m",
            series=_process("a", "0+6x30 180x30 stale", "0+60x30 1800x30 stale", "0+60x61 stale"),
        ),
        Case(
            kind="counter_reset", at="90m",
            series=_process("a", "0+6x30 0+6x30 180x60", "0+60x30 0+60x30 1800x60", "0+60x30 0+60x90"),
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
    ),
    needs="steps",
)  # fmt: skip
