"""A file system is full."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import ENDED, Knowledge, Line

KNOWN = Knowledge(
    title="A file system is full",
    impact=ENDED,
    signs=(
        Line(
            r"\[Errno 28\]|\bENOSPC\b|No space left on device|No usable temporary directory|"
            r"to the internal temporary file|couldn't get (?:a )?temp\w* .{0,20}file ?name",
            unless="/dev/shm|nccl|NCCL",
        ),
        Line(r"Disk quota exceeded|\[Errno 122\]"),
        Line(
            "DiskPressure|FreeDiskSpaceFailed|low on resource: ephemeral-storage|ephemeral local storage usage exceeds",
            info=True,
            passes=False,
        ),
    ),
    fix=(
        "Free space (old checkpoints, traces, XLA dumps, the persistent cache) or use a larger "
        "volume; then look at the newest checkpoint, which may be incomplete."
    ),
)
