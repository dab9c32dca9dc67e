"""Compilations: what compiled, why, and how long each phase took."""

from __future__ import annotations

from collections.abc import Iterator

from jaxobs.facts.cache import CACHE_RESULTS
from jaxobs.facts.compilations import CAUSES, PHASES
from jaxobs.facts.snapshot import Snapshot
from jaxobs.metrics.metric import Labels, Metric, Value, per_function


def _oldest_start(snapshot: Snapshot) -> Iterator[tuple[Labels, Value]]:
    if snapshot.in_progress:
        yield (), min(each.started for each in snapshot.in_progress)


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
        name="jax_compilation_oldest_start_timestamp_seconds", kind="gauge", unit="seconds", read=_oldest_start,
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
