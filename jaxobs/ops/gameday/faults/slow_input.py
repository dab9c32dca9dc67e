"""An input pipeline that is slower than the training."""

from __future__ import annotations

import time

from jaxobs.ops.gameday.fault_types import Fault, Scene

SECONDS = 0.5


def inject(scene: Scene) -> None:
    """Each batch takes its time."""
    time.sleep(SECONDS)


FAULT = Fault(
    title="The input pipeline takes half a second for each batch, and the device waits for it.",
    causes=("input_bound",),
    alert="JaxInputBound",
    lead=2,
    from_start=30,
    undo="Prefetch, more workers, or data that is stored prepared.",
    on_input=inject,
)
