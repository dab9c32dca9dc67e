"""A device at work that its hardware slows down."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_WHOSE = 'job="train", instance="a:9464", device="GPU-1"'
_THROTTLED = f'accelerator_throttled{{{_WHOSE}, reason="hw_thermal_slowdown"}}'
_BUSY = f"accelerator_utilization_ratio{{{_WHOSE}}}"
_TPU = 'accelerator_slowdown_ratio{job="train", instance="a:9464", device="0"}'
_LABELS = {"job": "train", "instance": "a:9464", "device": "GPU-1", "reason": "hw_thermal_slowdown"}
_TPU_LABELS = {"job": "train", "instance": "a:9464", "device": "0", "reason": "tpu"}

ALERT = Alert(
    name="JaxDeviceThrottled",
    severity="warning",
    concern="performance",
    summary="A busy device is throttled by its hardware.",
    description=(
        "{{ $labels.device }} of {{ $labels.instance }} ({{ $labels.job }}) was throttled ({{ $labels.reason }}) for "
        "{{ $value | humanizePercentage }} of the last 15 minutes."
    ),
    expr="job_instance_device_reason:accelerator_throttled:ratio15m{@} > <share>",
    for_="10m",
    keep_firing_for="15m",
    thresholds={
        "share": Threshold(
            value=0.25, unit="ratio", least=0.01, most=0.99,
            why="Short spells come with bursts of load; a quarter of the time slows every step.",
        )
    },
    panel=("devices", "throttled"),
    runbook=Runbook(
        meaning=(
            "For more than `<share>` of a quarter of an hour, the device ran slower than it could "
            "because of heat, a power brake or another hardware slowdown. Idle devices do not count "
            "(below 10 % utilization), nor do `sw_power_cap`, which a GPU at full load typically "
            "hits, and `sync_boost`."
        ),
        impact="Its steps take longer, up to several times, and with collectives so do those of the whole job.",
        diagnosis=(
            Step(
                do="See which devices are throttled, and why.",
                query="job_instance_device_reason:accelerator_throttled:ratio15m{@} > 0",
                answers=(
                    (
                        "`hw_thermal_slowdown`, `sw_thermal_slowdown`",
                        "Too hot: JaxDeviceTemperatureHigh has the steps.",
                    ),
                    (
                        "`hw_power_brake_slowdown`",
                        "The power supply or the rack limits the power: call those who operate the hardware.",
                    ),
                    ("`hw_slowdown` alone", "Heat or the power brake; the other two say which."),
                    ("`tpu`", "The runtime does not report why."),
                    ("all devices of a host, or of neighbouring hosts", "Cooling or power of the rack."),
                ),
            ),
            Step(
                do="See what it costs: compare its clocks with its neighbours'.",
                query='accelerator_clock_hertz{@, clock="sm"}',
                answers=(
                    ("far below the others", "It slows the job down: replace the host."),
                    ("like the others", "Little harm: it can wait until the morning."),
                ),
            ),
            Step(
                do="Look at the host.",
                command="nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER,CLOCK",
                answers=(
                    ("`Active` next to a reason", "It is happening now."),
                    ("a power limit below the default", "Somebody set it: `nvidia-smi -pl`."),
                ),
            ),
        ),
        mitigation=(
            "If one host delays the whole job, take it out and restart from the last checkpoint.",
            (
                "Have cooling and power checked. Meanwhile, lower the power limit of hot devices, "
                "which costs less than throttling."
            ),
        ),
        look_alikes=(
            ("Slow without throttling", "clocks are normal", "JaxStraggler"),
            ("Low clocks while idle", "utilization is near 0", "nothing is wrong; JaxDeviceIdle, if it should work"),
        ),
        evidence=(
            "Clocks, power and temperature of the host's devices over a day.",
            "The output of `nvidia-smi -q -d PERFORMANCE`.",
        ),
        verify="The share on the panel is 0 at full load, and step times are back to normal.",
    ),
    cases=(
        Case(
            kind="firing", at="36m", series={_THROTTLED: "0x19 1x60", _BUSY: "0.9x90"},
            fires=(Fired(labels=_LABELS, values=("100%",)),),
        ),
        Case(kind="pending", at="32m", series={_THROTTLED: "0x19 1x60", _BUSY: "0.9x90"}),
        Case(
            kind="firing", at="30m", series={_THROTTLED: "0.28x90", _BUSY: "0.9x90"},
            fires=(Fired(labels=_LABELS, values=("28%",)),),
        ),
        Case(kind="healthy", at="60m", series={_THROTTLED: "0.22x90", _BUSY: "0.9x90"}),
        Case(
            kind="firing", at="40m", series={_TPU: "0x9 0.2x60"},
            fires=(Fired(labels=_TPU_LABELS, values=("100%",)),),
        ),
        Case(kind="healthy", at="60m", series={_THROTTLED: "1x90", _BUSY: "0.02x90"}),
        Case(
            kind="healthy", at="60m",
            series={_THROTTLED.replace("hw_thermal_slowdown", "sw_power_cap"): "1x90", _BUSY: "0.9x90"},
        ),
        Case(kind="recovering", at="75m", series={_THROTTLED: "1x40 0x60", _BUSY: "0.9x120"}),
        Case(kind="target_gone", at="80m", series={_THROTTLED: "1x40 stale", _BUSY: "0.9x40 stale"}),
    ),
    needs="accelerator",
)  # fmt: skip
