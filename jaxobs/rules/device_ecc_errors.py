"""Memory errors of a device that could not be corrected."""

from __future__ import annotations

from jaxobs.rule_types import Alert, Case, Fired, Runbook, Step

_SERIES = (
    'accelerator_ecc_errors_total{job="train", instance="a:9464", device="GPU-1", '
    'error="uncorrected", counter="volatile"}'
)
_LABELS = {"job": "train", "instance": "a:9464", "device": "GPU-1"}

ALERT = Alert(
    name="JaxDeviceEccErrors",
    severity="warning",
    concern="availability",
    summary="A device had memory errors that could not be corrected.",
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
            "The device's memory returned bits that its error correction could see to be wrong and not repair. Errors "
            "that it "
            "repaired do not count. The counter is that since the driver was loaded."
        ),
        impact=(
            "The program that read them ends with an error. What it wrote shortly before may be wrong. A device that "
            "does it "
            "again will end job after job."
        ),
        diagnosis=(
            Step(
                do="See how many, on which devices, in a week.",
                query=(
                    'sum by (job, instance, device) (increase(accelerator_ecc_errors_total{@, error="uncorrected", '
                    'counter="volatile"}[7d])) > 0'
                ),
                answers=(
                    ("one error, once", "Cosmic or worn: reset the GPU and watch it."),
                    ("the same device again and again", "Replace it."),
                    ("several devices of one host", "Its power, heat or board."),
                ),
            ),
            Step(
                do="See whether rows of the memory were remapped, or wait to be.",
                command="nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT",
                answers=(
                    ("`Pending: Yes`", "A reset of the GPU takes the bad row out of use."),
                    ("`Remapping Failure Occurred: Yes`, or no spare rows", "Replace the GPU."),
                    ("nothing pending", "Done already; watch it."),
                ),
            ),
            Step(
                do="See whether numbers were hurt.",
                query="sum by (job, instance, name) (job_instance_name:jax_nonfinite:increase30m{@})",
                answers=(
                    ("above 0", "JaxNonFiniteValues: go back to a checkpoint before it."),
                    ("0 or nothing", "No sign of it."),
                ),
            ),
        ),
        mitigation=(
            "Take the host out of scheduling; move the job by its last checkpoint if it did not end by itself.",
            "Reset the GPU with nothing running on it, so that remapped rows take effect.",
            "Have it replaced if it comes again.",
        ),
        look_alikes=(
            ("Corrected errors rise", "`error` is `corrected`", "no harm: report a device with thousands a day"),
            ("An Xid without memory errors", "codes other than 48, 63, 64, 94 and 95", "JaxDeviceXidErrors"),
        ),
        evidence=(
            "`nvidia-smi -q -i N` with serial number.",
            "`dmesg -T | grep -i xid`.",
            "Which job ran there, and its last checkpoint before.",
        ),
        verify="No uncorrected error on the panel for a day of load after the reset.",
        tpu="TPUs do not tell such errors: they show as a halted device in the log.",
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
