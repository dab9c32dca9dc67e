"""The persistent compilation cache."""

from __future__ import annotations

from jaxobs.facts.cache import CACHE_RESULTS, UNSAVED
from jaxobs.metrics.metric import Metric, per_function

METRICS = (
    Metric(
        name="jax_persistent_cache_requests_total", kind="counter", labels=("function", "result"),
        values=(("result", CACHE_RESULTS),),
        read=per_function(lambda f: [((result,), n) for result, n in f.cache.items()]),
        help="Programs looked up in the persistent cache, or not looked up because it is off.",
    ),
    Metric(
        name="jax_persistent_cache_unsaved_total", kind="counter", labels=("reason",),
        values=(("reason", tuple(reason for reason in UNSAVED if reason != "disabled")),),
        read=lambda s: [((reason,), n) for reason, n in s.cache.unsaved.items()],
        help="Compiled programs that were not stored in the persistent cache although it is on.",
    ),
    Metric(
        name="jax_persistent_cache_saved_seconds_total", kind="counter", unit="seconds",
        read=lambda s: [((), s.cache.saved_seconds)],
        help=("Compile time saved by cache hits: from the compile that jaxobs measured, otherwise "
             "JAX's whole seconds."),
    ),
    Metric(
        name="jax_persistent_cache_bytes", kind="gauge", unit="bytes",
        read=lambda s: [] if s.cache.bytes is None else [((), s.cache.bytes)],
        help="Size of the persistent cache's entries on disk; absent if its directory is not accessible.",
    ),
    Metric(
        name="jax_persistent_cache_entries", kind="gauge",
        read=lambda s: [] if s.cache.entries is None else [((), s.cache.entries)],
        help="Number of compiled programs in the persistent cache's directory.",
    ),
)  # fmt: skip
