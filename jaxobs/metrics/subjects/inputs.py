"""Input of loops, and watched values."""

from __future__ import annotations

from jaxobs.metrics.metric import Metric

METRICS = (
    Metric(
        name="jax_input_wait_seconds_total", kind="counter", labels=("input",), unit="seconds",
        read=lambda s: [((each.name,), each.wait_seconds) for each in s.inputs],
        help="Time that the program's thread waited for batches of an input.",
    ),
    Metric(
        name="jax_input_batches_total", kind="counter", labels=("input",),
        read=lambda s: [((each.name,), each.batches) for each in s.inputs],
        help="Batches from an input, including those that another thread fetched.",
    ),
    Metric(
        name="jax_nonfinite_total", kind="counter", labels=("name",),
        read=lambda s: [((each.name,), each.nonfinite) for each in s.watched],
        help="Watched values, and scalars that found loops return, that contained a NaN or an infinity.",
    ),
)  # fmt: skip
