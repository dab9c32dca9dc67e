"""A training run that diverges."""

from __future__ import annotations

from jaxobs.ops.gameday.fault_types import Fault, Scene


def inject(scene: Scene) -> None:
    """A learning rate far too high."""
    scene.rate = 1e30


FAULT = Fault(
    title="The learning rate jumps to 1e30; the parameters overflow and the loss is NaN from then on.",
    causes=("nonfinite_values",),
    alert="JaxNonFiniteValues",
    lead=2,
    undo="Go back to the last good checkpoint and correct the schedule of the learning rate.",
    on_step=inject,
)
