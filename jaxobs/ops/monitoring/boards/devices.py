"""Each device by itself: JAX's allocator, and what the driver (NVML, libtpu) tells."""

from __future__ import annotations

from jaxobs.ops.monitoring.boards.devices_rows import hardware, memory
from jaxobs.ops.monitoring.panel_types import Annotation, Board, Variable

BOARD = Board(
    name="devices",
    title="JAX: devices",
    description=(
        "Memory, load, power and faults of each device. Graphs show the twenty worst of the selected "
        "ones; the table has all."
    ),
    variables=(Variable(name="device", label="Device", query="label_values(jax_device_info{@}, device)"),),
    annotations=(
        Annotation(
            name="Process starts", expr="jax_process_start_timestamp_seconds{@} * 1000",
            title="{{instance}} started", color="blue", value_is_time=True,
        ),
    ),
    rows=(memory.TABLE, memory.ROW, hardware.LOAD, hardware.FAULTS, hardware.LINKS),
)  # fmt: skip
