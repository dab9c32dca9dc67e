"""A device with nothing to do although its process makes steps."""

from __future__ import annotations

from jaxobs.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

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
                "What Google's guide to GKE takes for too little during training; a program that computes reaches far "
                "more."
            ),
        )
    },
    panel=("devices", "utilization"),
    runbook=Runbook(
        meaning=(
            "The device was busy for less than `<share>` of the time, for more than half an hour in which its process "
            "made steps. "
            "Busy means that some program ran, however small: little of it is always bad, much of it is not yet good."
        ),
        impact="It is paid for and does not compute. Others of the job may work while it stands by.",
        diagnosis=(
            Step(
                do="See whether all devices of the process are idle, or some.",
                query="job_instance_device:accelerator_utilization_ratio:avg15m{@}",
                answers=(
                    ("all", "The process waits: see what for."),
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
                            "The steps are too small to keep the device busy, or Python is slow in them: a larger "
                            "batch, or `lax.scan` over steps."
                        ),
                    ),
                ),
            ),
            Step(
                do="See whether the program runs on the device at all.",
                command="jaxobs top http://HOST:9464",
                answers=(
                    ("platform `cpu`", "JAX fell back to the CPU: the plugin or the driver is missing."),
                    ("`gpu` or `tpu`", "It does: go on as above."),
                ),
            ),
        ),
        mitigation=(
            "Follow what the process waits for; nothing has to be done at night.",
            "Give devices back that the program does not use.",
            (
                "If it should run on the accelerator and does not, set `JAX_PLATFORMS` to it, so that it fails rather "
                "than falls back."
            ),
        ),
        look_alikes=(
            ("A service without load", "no steps, few requests", "nothing is wrong: this alert does not look at it"),
            ("No steps at all", "the counter stands still", "JaxStepsStalled"),
            ("Busy but slow", "utilization is high, clocks are low", "JaxDeviceThrottled"),
        ),
        evidence=(
            "Utilization and categories of time over an hour.",
            "Batch size, step time, and number of devices that the program uses.",
        ),
        verify="The device is busy for more than `<share>` of the time over half an hour.",
        gpu="100 % utilization with low power is waiting in a collective, not work.",
        tpu="Where the driver tells the tensor cores' utilization, look at that: it says how much was computed.",
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
            fires=(Fired(labels=_LABELS, values=("10%",)),),
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
