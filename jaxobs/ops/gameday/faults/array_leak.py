"""Arrays that nobody frees."""

from __future__ import annotations

import jax

from jaxobs.ops.gameday.fault_types import Fault, Scene


def inject(scene: Scene) -> None:
    """Each batch stays on the device, in a list."""
    scene.kept.append(jax.device_put(scene.images))


FAULT = Fault(
    title="Each batch is kept on the device in a list that nobody empties.",
    causes=("memory_leak",),
    alert="JaxArrayLeak",
    lead=4,
    undo="Drop the references, or keep NumPy copies: `np.asarray(batch)`.",
    on_step=inject,
)
