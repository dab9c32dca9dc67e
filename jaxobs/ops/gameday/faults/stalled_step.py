"""A step that does not end."""

from __future__ import annotations

import threading

from jaxobs.ops.gameday.fault_types import Fault, Scene


def inject(scene: Scene) -> None:
    """Waits for a lock that nobody frees."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


FAULT = Fault(
    title="The training loop waits for a lock inside a step, for ever.",
    causes=("process_stuck",),
    alert="JaxProcessStuck",
    lead=2,
    undo="Take the stacks (`py-spy dump --pid PID`), then restart from the last checkpoint; fix the locks.",
    on_step=inject,
)
