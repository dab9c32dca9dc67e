"""Compilations: what compiled, why, and how long each phase took."""

from jaxobs.facts.compilations import CACHE_RESULTS, CAUSES, PHASES
from jaxobs.metrics.metric import Metric, per_function

METRICS = (
    Metric("jax_compilations_total",
           "Executables produced by cache misses, compiled or loaded from the persistent cache.",
           per_function(lambda f: [
               ((cause, cache), n) for cause, found in f.compilations.items() for cache, n in found.items()
           ]),
           ("function", "cause", "cache"), values=(("cause", CAUSES), ("cache", CACHE_RESULTS))),
    Metric("jax_compilations_in_progress", "Number of threads that are tracing, lowering or compiling now.",
           lambda s: [((), len({each.thread for each in s.in_progress}))]),
    Metric("jax_compilation_oldest_start_timestamp_seconds",
           "Start of the oldest phase in progress; absent if there is none.",
           lambda s: [((), min(each.started for each in s.in_progress))] if s.in_progress else []),
    Metric("jax_compile_phase_seconds", "Time of each phase of a cache miss, over all functions.",
           lambda s: [((phase,), h) for phase, h in s.phases.items()], ("phase",), kind="histogram",
           values=(("phase", PHASES),)),
    Metric("jax_function_compile_seconds", "Time of each phase of a cache miss, by function.",
           per_function(lambda f: [((name,), (f.phase_counts[name], n)) for name, n in f.phase_seconds.items()]),
           ("function", "phase"), kind="summary", values=(("phase", PHASES),)),
)  # fmt: skip
