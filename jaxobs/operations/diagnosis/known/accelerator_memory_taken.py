"""Another process holds the device's memory."""

from __future__ import annotations

from jaxobs.operations.diagnosis.knowledge import ENDED, Event, Knowledge, Line

KNOWN = Knowledge(
    title="Another process holds the memory of the device",
    impact=ENDED,
    signs=(
        Line("may be due to JAX pre-allocating too much device memory"),
        Line("failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY"),
        Event("out_of_memory:start:.*"),
        Event(r"out_of_memory:\w+:other_process.*"),
        Line("Free memory on device .{0,80}is less than desired GPU memory utilization"),
    ),
    fix=(
        "See who holds it (`nvidia-smi`) and end that process, or share the device: "
        "XLA_PYTHON_CLIENT_PREALLOCATE=false, or a smaller XLA_CLIENT_MEM_FRACTION."
    ),
    runbook="JaxOutOfMemory",
)
