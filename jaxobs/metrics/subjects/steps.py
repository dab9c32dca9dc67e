"""Steps of training loops."""

from jaxobs.metrics.metric import Metric

METRICS = (
    Metric("jax_steps_total", "Completed steps, by loop; absent if only some of them were observed.",
           lambda s: [((each.name,), each.steps) for each in s.loops if each.steps_counted], ("loop",)),
    Metric("jax_step_seconds",
           "Time from the end of one step to the end of the next, without evaluations and checkpoints between them.",
           lambda s: [((each.name,), each.seconds) for each in s.loops if each.seconds is not None], ("loop",),
           kind="histogram"),
    Metric("jax_step_items_total", "Samples or tokens in the completed steps, if the program reports how many.",
           lambda s: [((each.name,), each.items) for each in s.loops if each.items is not None], ("loop",)),
    Metric("jax_step_mfu_ratio",
           "Model FLOP utilization of the recent steps: what they compute relative to the device's peak.",
           lambda s: [((each.name,), each.mfu) for each in s.loops if each.mfu is not None], ("loop",)),
)  # fmt: skip
