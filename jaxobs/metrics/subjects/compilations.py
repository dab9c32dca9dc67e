"""Compilations: what compiled, why, and how long each phase took."""

from __future__ import annotations

from jaxobs.facts.cache import CACHE_RESULTS
from jaxobs.facts.compilations import CAUSES, PHASES
from jaxobs.metrics.metric import Metric, per_function

METRICS = (
    Metric(
        name="jax_compilations_total", kind="counter", labels=("function", "cause", "cache"),
        values=(("cause", CAUSES), ("cache", CACHE_RESULTS)),
        read=per_function(
            lambda f: [((cause, cache), n) for cause, found in f.compilations.items() for cache, n in found.items()]
        ),
        help="Executables produced by cache misses, compiled or loaded from the persistent cache.",
    ),
    Metric(
        name="jax_compilations_in_progress", kind="gauge",
        read=lambda s: [((), len({each.thread for each in s.in_progress}))],
        help="Number of threads that are tracing, lowering or compiling now.",
    ),
    Metric(
        name="jax_compilation_oldest_start_timestamp_seconds", kind="gauge", unit="seconds",
        read=lambda s: [((), min(each.started for each in s.in_progress))] if s.in_progress else [],
        help="Start of the oldest phase in progress; absent if there is none.",
    ),
    Metric(
        name="jax_compile_phase_seconds", kind="histogram", labels=("phase",), unit="seconds",
        values=(("phase", PHASES),), read=lambda s: [((phase,), h) for phase, h in s.phases.items()],
        help="Time of each phase of a cache miss, over all functions.",
    ),
    Metric(
        name="jax_function_compile_seconds", kind="summary", labels=("function", "phase"), unit="seconds",
        values=(("phase", PHASES),),
        read=per_function(lambda f: [((name,), (f.phase_counts[name], n)) for name, n in f.phase_seconds.items()]),
        help="Time of each phase of a cache miss, by function.",
    ),
)  # fmt: skip
