"""Functions that jaxobs instruments: calls, times and errors."""

from __future__ import annotations

from jaxobs.metrics.metric import Metric, per_function

METRICS = (
    Metric(
        name="jax_function_calls_total", kind="counter", labels=("function",),
        read=per_function(lambda f: [((), f.calls)]),
        help="Calls of instrumented functions; calls made while tracing another function do not count.",
    ),
    Metric(
        name="jax_function_dispatch_seconds", kind="histogram", labels=("function",), unit="seconds",
        read=per_function(lambda f: [((), f.dispatch)]),
        help="Time from call to return, of the timed calls of instrumented functions.",
    ),
    Metric(
        name="jax_function_device_seconds", kind="histogram", labels=("function",), unit="seconds",
        read=per_function(lambda f: [((), f.device)]),
        help=("Upper bound on the device time of sampled calls of instrumented functions, measured "
             "without waiting."),
    ),
    Metric(
        name="jax_function_errors_total", kind="counter", labels=("function", "error"),
        read=per_function(lambda f: [((error,), n) for error, n in f.errors.items()]),
        help="Calls of instrumented functions that raised, by exception type.",
    ),
    Metric(
        name="jax_fastpath_misses_total", kind="counter", labels=("function",),
        read=per_function(lambda f: [((), sum(f.fastpath_misses.values()))] if f.fastpath_watched else []),
        help="Calls of instrumented functions that JAX dispatched from Python although nothing compiled.",
    ),
)  # fmt: skip
