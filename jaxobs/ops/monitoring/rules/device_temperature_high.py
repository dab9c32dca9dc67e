"""A device that is close to the heat at which it slows down."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step, Threshold

_SERIES = 'accelerator_temperature_celsius{job="train", instance="a:9464", device="GPU-1"}'
_LABELS = {"job": "train", "instance": "a:9464", "device": "GPU-1"}

ALERT = Alert(
    name="JaxDeviceTemperatureHigh",
    severity="warning",
    concern="saturation",
    summary="A device is close to the temperature at which it throttles.",
    description=(
        "{{ $labels.device }} of {{ $labels.instance }} ({{ $labels.job }}) has been at {{ $value | humanize }} "
        "degrees Celsius or more for 10 minutes."
    ),
    expr="min_over_time(accelerator_temperature_celsius{@}[5m]) > <celsius>",
    for_="5m",
    keep_firing_for="10m",
    thresholds={
        "celsius": Threshold(
            value=85, unit="celsius", least=40, most=120,
            why=(
                "Data-centre GPUs throttle from about 87 to 90; `nvidia-smi -q -d TEMPERATURE` shows "
                "a model's own limit."
            ),
        )
    },
    panel=("devices", "temperature"),
    runbook=Runbook(
        meaning=(
            "The chip was above `<celsius>` degrees Celsius without interruption. In a cooled room "
            "at full load, 60 to 75 are normal."
        ),
        impact=("None yet. A few degrees more and the device throttles; eventually it shuts down, and "
               "the job ends."),
        diagnosis=(
            Step(
                do="See whether it is one device, one host, or many.",
                query="accelerator_temperature_celsius{@}",
                answers=(
                    ("one device", "Its cooler: dust, or contact."),
                    ("one host", "Fans, or blocked airflow."),
                    ("several hosts", "The room's or the rack's cooling: call those who operate it."),
                ),
            ),
            Step(
                do="See whether it is already throttled.",
                query="job_instance_device_reason:accelerator_throttled:ratio15m{@} > 0",
                answers=(
                    ("rows", "JaxDeviceThrottled: steps take longer now."),
                    ("nothing", "There is time."),
                ),
            ),
            Step(
                do="See the limits of this model.",
                command="nvidia-smi -q -d TEMPERATURE,POWER",
                answers=(
                    ("`GPU Slowdown Temp` within 3 degrees", "Act now."),
                    ("far from it", "Raise the threshold for such devices."),
                ),
            ),
        ),
        mitigation=(
            ("Lower the power limit of the device (`nvidia-smi -pl WATTS`): a few per cent less speed "
            "for several degrees."),
            "Take the host out at the next checkpoint and have its cooling checked.",
            "If it is the room, reduce the load on many hosts before they shut down.",
        ),
        look_alikes=(
            ("It is throttled", "the reason for throttling is thermal", "JaxDeviceThrottled"),
            ("Memory is hotter than the chip", "`Memory Current Temp` of nvidia-smi", "not measured here"),
        ),
        evidence=("Temperatures of the host's devices over a day.", "Power and fan speeds from `nvidia-smi -q`."),
        verify="The device stays below `<celsius>` at full load for half an hour.",
    ),
    cases=(
        Case(kind="firing", at="30m", series={_SERIES: "60x19 90x60"}, fires=(Fired(labels=_LABELS, values=("90",)),)),
        Case(kind="pending", at="28m", series={_SERIES: "60x19 90x60"}),
        Case(kind="healthy", at="60m", series={_SERIES: "80x90"}),
        Case(kind="healthy", at="60m", series={_SERIES: "90x4 70 " * 13}),
        Case(kind="recovering", at="60m", series={_SERIES: "60x19 90x15 70x60"}),
        Case(kind="target_gone", at="70m", series={_SERIES: "60x19 90x15 stale"}),
    ),
    needs="gpu",
)  # fmt: skip
