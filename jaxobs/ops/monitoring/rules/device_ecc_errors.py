"""Memory errors of a device that could not be corrected."""

from __future__ import annotations

from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired, Runbook, Step

_SERIES = (
    'accelerator_ecc_errors_total{job="train", instance="a:9464", device="GPU-1", '
    'error="uncorrected", counter="volatile"}'
)
_LABELS = {"job": "train", "instance": "a:9464", "device": "GPU-1"}

ALERT = Alert(
    name="JaxDeviceEccErrors",
    severity="warning",
    concern="availability",
    summary="A device had uncorrectable memory errors.",
    description=(
        "{{ $labels.device }} of {{ $labels.instance }} ({{ $labels.job }}) had {{ $value | humanize }} uncorrected "
        "memory errors in the last half hour."
    ),
    expr=(
        'sum without (error, counter) (increase(accelerator_ecc_errors_total{@, error="uncorrected", '
        'counter="volatile"}[30m])) > 0'
    ),
    for_="1m",
    keep_firing_for="1h",
    panel=("devices", "ecc_errors"),
    runbook=Runbook(
        meaning=(
            "The device's memory returned bits that its error correction detected as wrong but could "
            "not repair. Repaired errors do not count. The counter starts when the driver is loaded."
        ),
        impact=(
            "The program that read them ends with an error. What it wrote shortly before may be "
            "wrong. A device that does this again will end job after job."
        ),
        diagnosis=(
            Step(
                do="See how many there were in a week, on which devices.",
                query=(
                    'sum by (job, instance, device) (increase(accelerator_ecc_errors_total{@, error="uncorrected", '
                    'counter="volatile"}[7d])) > 0'
                ),
                answers=(
                    ("one error, once", "A cosmic ray or wear: reset the GPU and watch it."),
                    ("the same device repeatedly", "Replace it."),
                    ("several devices of one host", "Their power, heat or board."),
                ),
            ),
            Step(
                do="See whether memory rows were remapped, or are waiting to be.",
                command="nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT",
                answers=(
                    ("`Pending: Yes`", "A reset of the GPU takes the bad row out of use."),
                    ("`Remapping Failure Occurred: Yes`, or no spare rows", "Replace the GPU."),
                    ("nothing pending", "It is already repaired; watch it."),
                ),
            ),
            Step(
                do="See whether numbers were affected.",
                query="sum by (job, instance, name) (job_instance_name:jax_nonfinite:increase30m{@})",
                answers=(
                    ("above 0", "JaxNonFiniteValues: go back to a checkpoint before it."),
                    ("0 or nothing", "No sign of it."),
                ),
            ),
        ),
        mitigation=(
            ("Take the host out of scheduling. If the job did not end by itself, move it using its "
            "last checkpoint."),
            "Reset the GPU with nothing running on it, so that remapped rows take effect.",
            "Have it replaced if it happens again.",
        ),
        look_alikes=(
            ("Corrected errors rise", "`error` is `corrected`", "no harm: report a device with thousands a day"),
            ("An Xid without memory errors", "codes other than 48, 63, 64, 94 and 95", "JaxDeviceXidErrors"),
        ),
        evidence=(
            "`nvidia-smi -q -i N` with the serial number.",
            "`dmesg -T | grep -i xid`.",
            "The job that ran there, and its last checkpoint before the error.",
        ),
        verify="No uncorrected error on the panel for a day of load after the reset.",
        tpu="TPUs do not report such errors: they appear as a halted device in the log.",
    ),
    cases=(
        Case(kind="firing", at="21m", series={_SERIES: "0x19 31x60"}, fires=(Fired(labels=_LABELS, values=("31",)),)),
        Case(kind="pending", at="20m", series={_SERIES: "0x19 1x60"}),
        Case(kind="healthy", at="40m", series={_SERIES: "5x60"}),
        Case(kind="healthy", at="40m", series={_SERIES.replace("uncorrected", "corrected"): "0+5x60"}),
        Case(kind="recovering", at="120m", series={_SERIES: "0x19 1x150"}),
        Case(kind="target_gone", at="120m", series={_SERIES: "0x19 1x5 stale"}),
        Case(
            kind="counter_reset", at="44m",
            series={_SERIES: "7x39 0x1 1x30"},
            fires=(Fired(labels=_LABELS, values=("1",)),),
        ),
    ),
    needs="gpu",
)  # fmt: skip
