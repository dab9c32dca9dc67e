"""A function that is jitted in the loop."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxobs.ops.gameday.fault_types import Fault, Scene


def inject(scene: Scene) -> None:
    """A statistic of the batch, by a new jitted lambda each time."""
    jax.jit(lambda images: jnp.sqrt((images**2).mean()))(scene.images).block_until_ready()


FAULT = Fault(
    title="A lambda is jitted inside the training loop: a new function in each step, compiled each time.",
    causes=("recompilation",),
    alert="JaxRecompilationStorm",
    lead=1,
    from_start=45,
    undo="Create the jitted function once, outside of the loop.",
    on_step=inject,
)
