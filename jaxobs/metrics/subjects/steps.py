"""Steps of training loops."""

from __future__ import annotations

from jaxobs.metrics.metric import Metric

METRICS = (
    Metric(
        name="jax_steps_total", kind="counter", labels=("loop",),
        read=lambda s: [((each.name,), each.steps) for each in s.loops if each.steps_counted],
        help="Completed steps, by loop; absent if only some of them were observed.",
    ),
    Metric(
        name="jax_step_seconds", kind="histogram", labels=("loop",), unit="seconds",
        read=lambda s: [((each.name,), each.seconds) for each in s.loops if each.seconds is not None],
        help="Time from the end of one step to the end of the next, without evaluations and checkpoints between them.",
    ),
    Metric(
        name="jax_step_items_total", kind="counter", labels=("loop",),
        read=lambda s: [((each.name,), each.items) for each in s.loops if each.items is not None],
        help="Samples or tokens in the completed steps, if the program reports how many.",
    ),
    Metric(
        name="jax_step_mfu_ratio", kind="gauge", labels=("loop",), unit="ratio",
        read=lambda s: [((each.name,), each.mfu) for each in s.loops if each.mfu is not None],
        help="Model FLOP utilization of the recent steps: what they compute relative to the device's peak.",
    ),
)  # fmt: skip
