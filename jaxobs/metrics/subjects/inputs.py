"""Input of loops, and watched values."""

from jaxobs.metrics.metric import Metric

METRICS = (
    Metric("jax_input_wait_seconds_total", "Time that the program's thread waited for batches of an input.",
           lambda s: [((each.name,), each.wait_seconds) for each in s.inputs], ("input",)),
    Metric("jax_input_batches_total", "Batches from an input, including those that another thread fetched.",
           lambda s: [((each.name,), each.batches) for each in s.inputs], ("input",)),
    Metric("jax_nonfinite_total",
           "Watched values, and scalars that found loops return, that contained a NaN or an infinity.",
           lambda s: [((each.name,), each.nonfinite) for each in s.watched], ("name",)),
)  # fmt: skip
