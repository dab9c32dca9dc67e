"""A scalar whose type changes."""

from __future__ import annotations

import numpy as np

from jaxobs.ops.gameday.fault_types import Fault, Scene

TYPES = (int, float, np.float32, np.int32, np.float16, np.int8, np.uint8, np.int16, np.uint16, np.uint32, bool)
"""Python's own are weak types for JAX, NumPy's are not: each is a program of its own."""


def inject(scene: Scene) -> None:
    """The learning rate comes as another type in each step, with the same value."""
    scene.rate = TYPES[scene.count % len(TYPES)](1)


FAULT = Fault(
    title="The learning rate changes its type from step to step: int, float, float32, ... Each one is compiled for.",
    causes=("recompilation",),
    alert="JaxRecompilationStorm",
    lead=1,
    from_start=45,
    undo="Make it one type where it is read: `jnp.float32(rate)`.",
    on_step=inject,
)
