"""A GPU is broken, or its driver says so."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Alert, Knowledge, Line, Metric

_XIDS = (
    "48|54|61|62|63|64|69|74|79|92|94|95|109|110|119|120|121|122|123|124|125|126|136|137|140|142|143|14[4-9]|150|151|"
    "154|15[5-8]"
)
"""Of the hardware, its memory, its links and its firmware; the others follow from programs."""

KNOWN = Knowledge(
    title="A GPU reported a hardware error",
    impact=ENDED,
    signs=(
        Line(
            rf"NVRM: Xid \([^)]*\): (?:{_XIDS})\b",
            unless="[Nn]on-?fatal",
            info=True,
            passes=False,
        ),
        Line(
            "(?:GPU has|NVRM: (?:GPU has )?)fallen off the bus|GPU is lost|"
            "Unable to determine the device handle for GPU|GPU requires reset|"
            "SXid.{0,80}(?:[Ff]atal|error)",
            info=True,
            passes=False,
        ),
        Line(
            "[Uu]ncorrectable (?:NVLink|ECC) error|CUDA_ERROR_(?:ECC|NVLINK)_UNCORRECTABLE|CUDA_ERROR_CONTAINED|"
            "over nvlink or a hardware error|CUDA_ERROR_EXTERNAL_DEVICE|in external entity outside of CUDA|"
            "cudaError(?:ECC|Nvlink)Uncorrectable|cudaErrorContained|hipErrorECCNotCorrectable",
            passes=False,
        ),
        Line("Row remapp(?:ing|er) (?:failure|error)", info=True, passes=False),
        Metric(
            "accelerator_xid_errors_total",
            labels=(("xid", _XIDS),),
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
        Line(
            "PCIe Bus Error: severity=Uncorrected|AER: (?:Multiple )?Uncorrected",
            info=True,
            passes=False,
        ),
    ),
    needs=("log", "metrics-file", "target", "prometheus"),
    fix=("Drain the host and reset the GPU (`nvidia-smi -r`); if the same GPU reports it again, have it replaced."),
    collect="The driver's messages of that host: `dmesg -T | grep -i xid`.",
    runbook="JaxDeviceXidErrors",
)
