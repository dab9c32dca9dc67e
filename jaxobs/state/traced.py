"""What has a trace becomes an exemplar of the histogram that it is counted in."""

from __future__ import annotations

from typing import Any

from jaxobs.facts.compilations import Compilation
from jaxobs.metrics.buckets import PHASE_BOUNDS
from jaxobs.state.exemplars import Exemplar, Exemplars
from jaxobs.state.store import Store


def compiled(store: Store, event: Compilation, context: Any, *, unless_known: bool = False) -> None:
    """The phases of a compilation, with OpenTelemetry's context of a span; nothing if that isn't recorded.

    Args:
      unless_known: whether an exemplar that the same compilation has already is better.
    """
    for phase, seconds in event.phases.items():
        observed(
            store, "jax_compile_phase_seconds", (phase,), PHASE_BOUNDS, seconds, event.time, context,
            unless_known=unless_known,
        )  # fmt: skip


def observed(
    store: Store, metric: str, labels: tuple[str, ...], bounds: tuple[float, ...], value: float, time: float,
    context: Any, *, unless_known: bool = False,
) -> None:  # fmt: skip
    """An observation of a histogram, with the context of its span; nothing if that isn't recorded."""
    if context.is_valid and context.trace_flags.sampled:
        exemplar = Exemplar(f"{context.trace_id:032x}", f"{context.span_id:016x}", value, time)
        store.part(Exemplars).put(metric, labels, bounds, exemplar, unless_known=unless_known)
