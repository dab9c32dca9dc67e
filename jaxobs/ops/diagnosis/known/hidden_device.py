"""A process asks for a device that it is not shown."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line

KNOWN = Knowledge(
    title="A process asks for a GPU that is not among those it is shown",
    impact=ENDED,
    signs=(Line("CUDA_ERROR_INVALID_DEVICE|invalid device ordinal"),),
    fix=(
        "Compare CUDA_VISIBLE_DEVICES with what the launcher gives each process, and pass "
        "`local_device_ids` to jax.distributed.initialize."
    ),
)
