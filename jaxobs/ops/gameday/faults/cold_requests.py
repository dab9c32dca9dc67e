"""Requests that compile."""

from __future__ import annotations

import numpy as np

from jaxobs.instruments.requests import request
from jaxobs.ops.gameday.fault_types import Fault, Scene

SIZES = (1, 3, 8, 20, 55, 150, 400, 1100)
"""Far enough apart that the sizes themselves are not a fault: nobody compiled for them before the traffic came."""
EVERY = 40
"""Requests from one new size to the next."""


def inject(scene: Scene) -> None:
    """A request in each step, now and then of a size that nobody has asked for."""
    from jaxobs.demo import training

    size = SIZES[min(scene.count // EVERY, len(SIZES) - 1)]
    with request("/classify"):
        np.asarray(training.predict(scene.model, np.resize(scene.images, (size, 8, 8, 1))))


FAULT = Fault(
    title="Requests arrive before their sizes were compiled: some of them wait for a compilation.",
    causes=("cold_requests",),
    alert="JaxColdRequestsHigh",
    lead=2,
    from_start=45,
    undo="Compile each size before the traffic: `jaxobs.warmup`, `jaxobs cache warm`; pad requests to a few sizes.",
    on_step=inject,
)
