"""CUDA, cuDNN or another library of NVIDIA does not fit."""

from __future__ import annotations

from jaxobs.operations.diagnosis.knowledge import ENDED, Knowledge, Line

KNOWN = Knowledge(
    title="A CUDA library or the driver does not fit this JAX",
    impact=ENDED,
    signs=(
        Line(r"Outdated \w+ installation found", passes=False),
        Line(r"Found \w+ version \d+, but JAX was built against version \d+"),
        Line("CUDA version check failed during initialization", passes=False),
        Line(r"Loaded runtime CuDNN library: \S+ but source was compiled with"),
        Line("DNN library initialization failed", weak=True),
        Line("CUDNN_STATUS_(?:NOT_INITIALIZED|SUBLIBRARY_VERSION_MISMATCH)"),
        Line(
            "CUDA driver version is insufficient|CUDA_ERROR_(?:SYSTEM_DRIVER_MISMATCH|"
            "COMPAT_NOT_SUPPORTED_ON_DEVICE|UNSUPPORTED_PTX_VERSION)|"
            "PTX was compiled with an unsupported toolchain|the provided PTX was compiled with"
        ),
        Line(
            "[Dd]river/library version mismatch|no kernel image is available for execution|"
            "ptxas does not support CC|is not supported by (?:this|the current) (?:ptxas|CUDA)"
        ),
        Line(r"libdevice not found|Couldn.t (?:find|get) ptxas|undefined symbol: \w*(?:cu|nv)\w+"),
    ),
    fix=(
        "Install one set that fits together: `pip install -U 'jax[cuda12]'`, no other CUDA in "
        "LD_LIBRARY_PATH, no other framework imported first, and a driver that is new enough. "
        "After a driver update, restart the host."
    ),
    collect="The first error above it in the log, and `jaxobs doctor` on that machine.",
)
