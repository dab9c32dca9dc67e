"""The persistent compilation cache."""

from jaxobs.facts.compilations import CACHE_RESULTS, UNSAVED
from jaxobs.metrics.metric import Metric, per_function

METRICS = (
    Metric("jax_persistent_cache_requests_total",
           "Programs looked up in the persistent cache, or not looked up because it is off.",
           per_function(lambda f: [((result,), n) for result, n in f.cache.items()]), ("function", "result"),
           values=(("result", CACHE_RESULTS),)),
    Metric("jax_persistent_cache_unsaved_total",
           "Compiled programs that were not stored in the persistent cache although it is on.",
           lambda s: [((reason,), n) for reason, n in s.cache.unsaved.items()], ("reason",),
           values=(("reason", tuple(reason for reason in UNSAVED if reason != "disabled")),)),
    Metric("jax_persistent_cache_saved_seconds_total",
           "Compile time saved by cache hits: measured by jaxobs if possible, otherwise JAX's whole seconds.",
           lambda s: [((), s.cache.saved_seconds)]),
    Metric("jax_persistent_cache_bytes",
           "Size of the persistent cache's entries on disk; absent if its directory is not accessible.",
           lambda s: [] if s.cache.bytes is None else [((), s.cache.bytes)]),
    Metric("jax_persistent_cache_entries", "Number of compiled programs in the persistent cache's directory.",
           lambda s: [] if s.cache.entries is None else [((), s.cache.entries)]),
)  # fmt: skip
