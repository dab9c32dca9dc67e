"""Batches of every size."""

from __future__ import annotations

from jaxobs.ops.gameday.fault_types import Fault, Scene


def inject(scene: Scene) -> None:
    """The batch gets another size each time."""
    size = scene.random.randrange(20, len(scene.labels))
    scene.images, scene.labels = scene.images[:size], scene.labels[:size]


FAULT = Fault(
    title="Batches have a different size in each step, so the training step recompiles again and again.",
    causes=("recompilation",),
    alert="JaxRecompilationStorm",
    lead=1,
    from_start=45,
    undo="Drop the last batch or pad batches to one size; bucket sizes that have to vary.",
    on_input=inject,
)
