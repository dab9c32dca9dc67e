"""Steps that take longer than in the last week."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_LABELS = {"job": "train", "loop": "train"}
_WHOSE = '{job="train", instance="a:9464", loop="train"}'


def _steps(seconds: str) -> dict[str, str]:
    """A loop that makes 128 steps a minute, and the seconds that went into them."""
    end = " stale" if "stale" in seconds else ""
    return {
        f"jax_step_seconds_sum{_WHOSE}": seconds,
        f"jax_step_seconds_count{_WHOSE}": f"0+128x290{end}",
    }


def _recompiled(values: str) -> dict[str, str]:
    """Its function compiles for another shape."""
    whose = 'job="train", instance="a:9464"'
    return {
        f"jax_process_start_timestamp_seconds{{{whose}}}": "0x300",
        f'jax_compilations_total{{{whose}, function="f", cause="shape", cache="miss"}}': values,
    }


_RUN = {'jax_run_info{job="train", instance="a:9464", run_id="r", last_exit=""}': "1x300"}

ALERT = Alert(
    name="JaxStepTimeRegression",
    severity="warning",
    concern="performance",
    summary="Steps take longer than in the last week.",
    description=(
        "The steps of {{ $labels.loop }} ({{ $labels.job }}) take {{ $value | humanizeDuration }} in "
        "the median process, far more than the median of the last week."
    ),
    expr=(
        "job_run_id_loop:jax_step_seconds:median30m{@}\n"
        "> <factor> * sum without (instance) (job_instance_run_id_loop:jax_step_seconds:median7d_median30m{@})\n"
        "unless max_over_time(job_run_id_loop:jax_step_seconds:ratio45m_recompiled{@}[7d])"
    ),
    for_="15m",
    keep_firing_for="15m",
    thresholds={
        "factor": Threshold(
            value=1.25, unit="factor", least=1.01, most=100,
            why=(
                "Step times of one program on the same devices vary by a few per cent; a quarter "
                "needs an explanation."
            ),
        )
    },
    panel=("debug", "step_time"),
    runbook=Runbook(
        meaning=(
            "The step time of the run's median process, over half an hour, is more than `<factor>` "
            "its median of the last seven days. Evaluations and checkpoints between steps do not "
            "count, nor do a few slow steps. A loop with less than two hours of history is not "
            "judged. Nor is one that was compiled for another shape and took longer from then on, as in a stage with "
            "longer sequences, for the following seven days. After another intended, permanent change, the alert ends "
            "by itself within days."
        ),
        impact=(
            "No work is lost, but the run ends later and costs more by the same factor. Requests "
            "that are recorded as steps are answered later."
        ),
        diagnosis=(
            Step(
                do="See whether all processes are slower, or one delays the others.",
                query="job_instance_loop:jax_step_seconds:median30m{@}",
                answers=(
                    ("all similar, and the finding `straggler` is active", "One host: JaxStraggler."),
                    ("only one is slower", "Its device or host: JaxStraggler, JaxDeviceThrottled."),
                    ("all similar, and no straggler", "The program, its data, or something they share: continue."),
                ),
            ),
            Step(
                do="See when it started, and what changed then: the version, the batch, the input.",
                query="count by (job, jax, jaxlib, plugin) (jax_build_info{@})",
                answers=(
                    ("other versions since then", "The upgrade: roll back, and compare the two as below."),
                    ("the same", "The program, its arguments or the machines."),
                ),
            ),
            Step(
                do="See which part of a step waits for input or compiles.",
                query='sum by (job, category) (rate(jax_time_seconds_total{@}[30m]))',
                answers=(
                    ("`input_wait` has grown", "JaxInputBound."),
                    ("`compile` or `trace` has grown", "JaxRecompilationStorm."),
                    ("only `step`", "The device computes longer, or waits inside the program: continue."),
                ),
            ),
            Step(
                do="Compare with the event log of a fast run.",
                command="jaxobs compare FAST.jsonl SLOW.jsonl",
                answers=(
                    (
                        "a program with more FLOPs or other instructions",
                        "The model, the batch or the compiler changed.",
                    ),
                    ("the same programs", "The machine: clocks, links, neighbours. See the devices dashboard."),
                ),
            ),
        ),
        mitigation=(
            "If a deployment caused it, roll back.",
            "If one host or device is slow, replace it: see JaxStraggler and JaxDeviceThrottled.",
            ("If the change is intended, such as a larger batch, silence the alert until the new time "
            "is in the history."),
        ),
        look_alikes=(
            ("Steps that do not end", "no step is counted", "JaxStepsStalled"),
            ("The devices wait for the loader", "`input_wait` is a large part", "JaxInputBound"),
            ("A loop with longer batches", "`jax_step_items_total` per step rose as well", "nothing is slower"),
            ("Time goes elsewhere, not into steps", "the step time is normal", "JaxGoodputLow"),
        ),
        evidence=(
            "The panel over two weeks, with the deployments.",
            "The output of `jaxobs compare`.",
            "Clocks, power and temperature of the devices before and after.",
        ),
        verify="The step time on the panel is below `<factor>` its old level for half an hour.",
        gpu="Look at the clocks first: if the program did not change, a throttled GPU is the most common cause.",
        tpu="On a slice with a bad link, only collectives take longer: JaxDeviceLinkFault.",
    ),
    cases=(
        Case(
            kind="firing", at="215m", series=_steps("0+32x180 5804+44x49"),
            fires=(Fired(labels=_LABELS, values=("343.8ms",)),),
        ),
        Case(kind="pending", at="209m", series=_steps("0+32x180 5804+44x49")),
        Case(kind="healthy", at="225m", series=_steps("0+32x180 5798+38x49")),
        Case(kind="healthy", at="100m", series=_steps("0+32x60 1964+44x229")),
        Case(kind="healthy", at="225m", series=_steps("0+32x180 5804+44x49") | _RUN | _recompiled("_x180 1x110")),
        Case(
            kind="firing", at="215m", series=_steps("0+32x180 5804+44x49") | _RUN | _recompiled("_x100 1x200"),
            fires=(Fired(labels=_LABELS | {"run_id": "r"}, values=("343.8ms",)),),
        ),
        Case(
            kind="firing", at="215m",
            series=_steps("0+32x180 5804+44x49") | _RUN | {
                name.replace("a:9464", "b:9464").replace('"r"', '"s"'): values
                for name, values in (_steps("0+44x290") | _RUN).items()
            },
            fires=(Fired(labels=_LABELS | {"run_id": "r"}, values=("343.8ms",)),),
        ),
        Case(
            kind="recovering", at="340m",
            series=_steps("0+32x220 7084+44x40 8832+32x90") | {f"jax_step_seconds_count{_WHOSE}": "0+128x350"},
        ),
        Case(kind="target_gone", at="340m", series=_steps("0+32x240 7724+44x49 stale")),
    ),
    needs="steps",
)  # fmt: skip
