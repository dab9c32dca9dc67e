"""A checkpoint that finds no room."""

from __future__ import annotations

import errno
import os

from jaxobs.ops.gameday.fault_types import Fault, Scene


def inject(scene: Scene) -> None:
    """Raises what a full file system raises when a checkpoint is written. Nothing is filled."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(scene.folder / "checkpoint_120" / "params"))


FAULT = Fault(
    title="The file system is full when a checkpoint is saved, and the program ends.",
    causes=("disk_full",),
    alert="JaxTrainingGone",
    lead=10,
    only="the job has several processes or is 6 h old, and its target is dropped: so not in a rehearsal",
    undo="Free space or enlarge the volume, check whether the newest checkpoint is whole, then restart from it.",
    on_step=inject,
)
