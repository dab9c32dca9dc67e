"""NaN in the data."""

from __future__ import annotations

import numpy as np

from jaxobs.ops.gameday.fault_types import Fault, Scene


def inject(scene: Scene) -> None:
    """Makes one pixel of one image in each batch NaN."""
    scene.images = np.array(scene.images)
    scene.images[scene.random.randrange(len(scene.images)), 3, 4] = np.nan


FAULT = Fault(
    title="A record in each batch contains NaN; the loss jumps to that of guessing.",
    causes=("nonfinite_input",),
    alert="JaxNonFiniteValues",
    lead=2,
    undo="Find and fix the record, check for NaN in the input pipeline, and go back to the last good checkpoint.",
    on_input=inject,
)
