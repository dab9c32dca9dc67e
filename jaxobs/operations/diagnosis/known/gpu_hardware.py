"""A GPU is broken, or its driver says so."""

from __future__ import annotations

from jaxobs.operations.diagnosis.knowledge import ENDED, Alert, Knowledge, Line, Metric

KNOWN = Knowledge(
    title="A GPU reported a hardware error",
    impact=ENDED,
    signs=(
        Line(
            r"NVRM: Xid \([^)]*\): (?:48|61|62|63|64|74|79|92|94|95|109|110|119|120|136|140|143|154)\b",
            info=True,
            passes=False,
        ),
        Line("GPU has fallen off the bus|GPU is lost", info=True, passes=False),
        Line(
            "[Uu]ncorrectable (?:NVLink|ECC) error|CUDA_ERROR_ECC_UNCORRECTABLE|CUDA_ERROR_NVLINK_UNCORRECTABLE",
            passes=False,
        ),
        Line("Row remapp(?:ing|er) (?:failure|error)", info=True, passes=False),
        Metric(
            "accelerator_xid_errors_total",
            labels=(("xid", "48|61|62|63|64|74|79|92|94|95|109|110|119|120|136|140|143|154"),),
        ),
        Metric(
            "accelerator_ecc_errors_total",
            labels=(
                ("error", "uncorrected"),
                ("counter", "volatile"),
            ),
        ),
        Alert("JaxDeviceXidErrors", weak=False),
        Alert("JaxDeviceLost", weak=False),
    ),
    needs=("log", "metrics-file", "target", "prometheus"),
    fix=("Drain the host and reset the GPU (`nvidia-smi -r`); if the same GPU reports it again, have it replaced."),
    collect="The driver's messages of that host: `dmesg -T | grep -i xid`.",
    runbook="JaxDeviceXidErrors",
)
