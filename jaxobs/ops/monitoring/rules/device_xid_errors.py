"""Errors of a GPU that its driver reported."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step

_SERIES = 'accelerator_xid_errors_total{job="train", instance="a:9464", device="GPU-1", xid="79"}'
_START = 'jax_process_start_timestamp_seconds{job="train", instance="a:9464"}'
_LABELS = {"job": "train", "instance": "a:9464", "device": "GPU-1", "xid": "79"}

ALERT = Alert(
    name="JaxDeviceXidErrors",
    severity="warning",
    concern="availability",
    summary="The driver reported GPU errors.",
    description=(
        "{{ $labels.device }} of {{ $labels.instance }} ({{ $labels.job }}) had Xid {{ $labels.xid }} {{ $value | "
        "humanize }} times in the last half hour."
    ),
    expr='max_over_time(job_instance_device_xid:accelerator_xid_errors:increase30m{@, xid!~"13|31|43|45"}[10m]) > 0',
    for_="1m",
    panel=("devices", "xid_errors"),
    runbook=Runbook(
        meaning=(
            "The driver logged an Xid, its number for a class of errors, for a device that this "
            "process uses. Xids 13, 31, 43 and 45, which NVIDIA attributes to the program (an "
            "illegal address, a channel that was reset or torn down), are ignored: they appear as "
            "errors of functions."
        ),
        impact=(
            "It ranges from a single recovered error to a device that is gone. What runs on it "
            "typically fails in the next step, and the job with it."
        ),
        diagnosis=(
            Step(
                do="See which codes, on which devices.",
                query=(
                    "sum by (job, instance, device, xid) "
                    "(job_instance_device_xid:accelerator_xid_errors:increase30m{@}) > 0"
                ),
                answers=(
                    (
                        "48, 94, 95",
                        "An uncorrectable memory error; 94 is contained to one program, 95 is not: reset the GPU.",
                    ),
                    (
                        "63, 64",
                        ("A memory row was remapped, or could not be: reset at the next opportunity; "
                        "after a second 64, replace it."),
                    ),
                    ("74", "NVLink: JaxDeviceLinkFault."),
                    ("79", "Fallen off the bus: JaxDeviceLost. Power, heat or the slot."),
                    ("62, 109, 119, 120", "Firmware: reset the GPU, or restart the host."),
                    ("other codes", "See NVIDIA's page on Xid errors."),
                ),
            ),
            Step(
                do="Read the driver's messages on the host.",
                command="dmesg -T | grep -i xid | tail -n 20",
                answers=(
                    ("a process name and an address", "The program that caused it."),
                    ("several GPUs in the same second", ("Something they share: a switch, the power "
                                                        "supply, the host.")),
                ),
            ),
            Step(
                do="See what it reported before: heat, power, memory errors.",
                command="nvidia-smi -q -d ECC,TEMPERATURE,POWER,ROW_REMAPPER",
                answers=(
                    ("`Pending: Yes` of remapped rows", "A reset of the GPU puts them into effect."),
                    ("`Remapping Failure Occurred: Yes`", "Replace the GPU."),
                    ("no answer", "The driver hangs: restart the host."),
                ),
            ),
        ),
        mitigation=(
            "Take the host out of scheduling, so that nothing new starts there.",
            "If the job ended, restart it on other hosts from its last checkpoint.",
            "Reset the GPU (`nvidia-smi --gpu-reset -i N`, with nothing running on it), or restart the host.",
            "If the same GPU reports the same Xid again within days, have it replaced.",
        ),
        look_alikes=(
            ("An error in the program", "Xid 13, 31, 43 or 45, with an error of a function", "JaxFunctionErrors"),
            ("The device no longer responds", "`accelerator_up` is 0", "JaxDeviceLost"),
            ("Memory errors without an Xid", "the ECC counters rise", "JaxDeviceEccErrors"),
        ),
        evidence=(
            "`dmesg -T` around that time.",
            "`nvidia-bug-report.sh` from the host, before a reset.",
            "Serial number and slot: `nvidia-smi -q -i N`.",
        ),
        verify="No new Xid on the panel for an hour of full load after the reset, and `nvidia-smi` lists the device.",
    ),
    cases=(
        Case(
            kind="firing", at="21m",
            series={_SERIES: "_x20 1x60", _START: "0x80"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(kind="pending", at="20m", series={_SERIES: "_x20 1x60", _START: "0x80"}),
        Case(kind="healthy", at="25m", series={_SERIES.replace("79", "31"): "_x20 1x60", _START: "0x80"}),
        Case(kind="healthy", at="25m", series={_SERIES: "1x60", _START: "-90000x80"}),
        Case(
            kind="firing", at="29m", series={_SERIES: "_x20 1x1 stale", _START: "0x22 stale"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
        Case(kind="recovering", at="70m", series={_SERIES: "_x20 1x80", _START: "0x100"}),
        Case(kind="target_gone", at="45m", series={_SERIES: "_x20 1x5 stale", _START: "0x26 stale"}),
        Case(
            kind="counter_reset", at="44m", series={_SERIES: "3x40 1x40", _START: "0x40 2460x40"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
    ),
    needs="gpu",
)  # fmt: skip
