"""A device with nothing to do although its process makes steps."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_BUSY = 'accelerator_utilization_ratio{job="train", instance="a:9464", device="GPU-1"}'
_STEPS = 'jax_steps_total{job="train", instance="a:9464", loop="train"}'
_LABELS = {"job": "train", "instance": "a:9464", "device": "GPU-1"}

ALERT = Alert(
    name="JaxDeviceIdle",
    severity="warning",
    concern="capacity",
    summary="A device has little to do although its process makes steps.",
    description=(
        "{{ $labels.device }} of {{ $labels.instance }} ({{ $labels.job }}) was busy for {{ $value | "
        "humanizePercentage }} of the time, while steps were made."
    ),
    expr=(
        "job_instance_device:accelerator_utilization_ratio:avg15m{@} < <share>\n"
        "and on (job, instance)\n"
        "sum by (job, instance) (increase(jax_steps_total{@}[15m])) > 0"
    ),
    for_="30m",
    keep_firing_for="15m",
    thresholds={
        "share": Threshold(
            value=0.2, unit="ratio", least=0.001, most=0.99,
            why=(
                "Google's guide for GKE considers less than this too little during training; a "
                "program that computes reaches far more."
            ),
        )
    },
    panel=("devices", "utilization"),
    runbook=Runbook(
        meaning=(
            "The device was busy for less than `<share>` of the time, for more than half an hour in "
            "which its process made steps. Busy means that any program ran, however small: a low "
            "value is always bad, but a high one is not necessarily good."
        ),
        impact=("You pay for the device while it does not compute. Other devices of the job may be "
               "working meanwhile."),
        diagnosis=(
            Step(
                do="See whether all devices of the process are idle, or only some.",
                query="job_instance_device:accelerator_utilization_ratio:avg15m{@}",
                answers=(
                    ("all", "The process waits: see for what."),
                    ("some, at 0", "The program does not use them: no sharding over them, or `jax.devices()[0]`."),
                ),
            ),
            Step(
                do="See what the process does instead.",
                query="sum by (job, instance, category) (rate(jax_time_seconds_total{@}[15m]))",
                answers=(
                    ("`input_wait`", "JaxInputBound."),
                    ("`compile`", "JaxRecompilationStorm."),
                    ("`transfer`", "Results are fetched in each step: log less often."),
                    (
                        "`step`",
                        (
                            "The steps are too small to keep the device busy, or Python is slow in "
                            "them: use a larger batch, or `lax.scan` over steps."
                        ),
                    ),
                ),
            ),
            Step(
                do="See whether the program runs on the device at all.",
                command="jaxobs top http://HOST:9464",
                answers=(
                    ("platform `cpu`", "JAX fell back to the CPU: the plugin or the driver is missing."),
                    ("`gpu` or `tpu`", "It does: continue as above."),
                ),
            ),
        ),
        mitigation=(
            "Fix what the process waits for; this can wait until morning.",
            "Release devices that the program does not use.",
            (
                "If it should run on the accelerator but does not, set `JAX_PLATFORMS` to that "
                "platform, so that it fails instead of falling back."
            ),
        ),
        look_alikes=(
            ("A service without load", "no steps, few requests", "nothing is wrong: this alert ignores it"),
            ("No steps at all", "the counter does not rise", "JaxStepsStalled"),
            ("Busy but slow", "utilization is high, clocks are low", "JaxDeviceThrottled"),
        ),
        evidence=(
            "Utilization and categories of time over an hour.",
            "Batch size, step time, and the number of devices that the program uses.",
        ),
        verify="The device is busy for more than `<share>` of the time over half an hour.",
        gpu="100 % utilization with low power means waiting in a collective, not work.",
        tpu=("If the driver reports the utilization of the tensor cores, look at that: it shows how "
            "much was computed."),
    ),
    cases=(
        Case(
            kind="firing", at="40m",
            series={_BUSY: "0.18x120", _STEPS: "0+10x120"},
            fires=(Fired(labels=_LABELS, values=("18%",)),),
        ),
        Case(kind="pending", at="25m", series={_BUSY: "0.18x120", _STEPS: "0+10x120"}),
        Case(kind="healthy", at="60m", series={_BUSY: "0.22x120", _STEPS: "0+10x120"}),
        Case(kind="healthy", at="60m", series={_BUSY: "0x120", _STEPS: "50x120"}),
        Case(kind="recovering", at="100m", series={_BUSY: "0.1x60 0.9x60", _STEPS: "0+10x120"}),
        Case(
            kind="firing", at="76m", series={_BUSY: "0.1x120", _STEPS: "0+10x50 500x70"},
            fires=(Fired(labels=_LABELS, values=("10%",), told_at="64m"),),
        ),
        Case(kind="job_finished", at="88m", series={_BUSY: "0.1x120", _STEPS: "0+10x50 500x70"}),
        Case(kind="target_gone", at="100m", series={_BUSY: "0.1x50 stale", _STEPS: "0+10x50 stale"}),
        Case(
            kind="counter_reset", at="60m", series={_BUSY: "0.18x120", _STEPS: "0+10x40 0+10x80"},
            fires=(Fired(labels=_LABELS, values=("18%",)),),
        ),
    ),
    needs="accelerator",
)  # fmt: skip
