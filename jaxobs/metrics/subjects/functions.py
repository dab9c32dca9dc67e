"""Functions that jaxobs instruments: calls, times and errors."""

from jaxobs.metrics.metric import Metric, per_function

METRICS = (
    Metric("jax_function_calls_total",
           "Calls of instrumented functions; calls made while tracing another function do not count.",
           per_function(lambda f: [((), f.calls)]), ("function",)),
    Metric("jax_function_dispatch_seconds", "Time from call to return, of the timed calls of instrumented functions.",
           per_function(lambda f: [((), f.dispatch)]), ("function",), kind="histogram"),
    Metric("jax_function_device_seconds",
           "Upper bound on the device time of sampled calls of instrumented functions, measured without waiting.",
           per_function(lambda f: [((), f.device)]), ("function",), kind="histogram"),
    Metric("jax_function_errors_total", "Calls of instrumented functions that raised, by exception type.",
           per_function(lambda f: [((error,), n) for error, n in f.errors.items()]), ("function", "error")),
    Metric("jax_fastpath_misses_total",
           "Calls of instrumented functions that JAX dispatched from Python although nothing compiled.",
           per_function(lambda f: [((), sum(f.fastpath_misses.values()))] if f.fastpath_watched else []),
           ("function",)),
)  # fmt: skip
