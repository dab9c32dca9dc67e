"""Exemplars: for a bucket of a histogram, the latest observation that a trace was recorded of."""

import bisect
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxobs.base import threads
from jaxobs.facts.compilations import Compilation
from jaxobs.metrics.buckets import PHASE_BOUNDS
from jaxobs.state.store import Store

MOST = 512
"""Buckets that have one; beyond that, the one that is oldest goes."""


@dataclass(frozen=True, slots=True)
class Exemplar:
    """An observation, with the span that shows what happened."""

    trace_id: str
    """32 hexadecimal digits."""
    span_id: str
    """16 hexadecimal digits."""
    value: float
    time: float
    """In seconds since the epoch."""


Bucket = tuple[tuple[str, ...], int]
"""Label values, and the position of the bucket."""


class Exemplars:
    """Exemplars of this process. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threads.RLock()
        self._kept: OrderedDict[tuple[str, Bucket], Exemplar] = OrderedDict()

    def put(
        self, metric: str, labels: tuple[str, ...], bounds: tuple[float, ...], exemplar: Exemplar, *,
        unless_known: bool = False,
    ) -> None:  # fmt: skip
        """Notes the trace of an observation in a histogram; `unless_known` keeps one that is there for it."""
        key = metric, (labels, bisect.bisect_left(bounds, exemplar.value))
        with self._lock:
            known = self._kept.get(key)
            if unless_known and known is not None and (known.value, known.time) == (exemplar.value, exemplar.time):
                return
            self._kept.pop(key, None)
            self._kept[key] = exemplar
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)

    def of(self, metric: str) -> Mapping[Bucket, Exemplar]:
        """The exemplars of a metric, by bucket."""
        with self._lock:
            return {bucket: exemplar for (name, bucket), exemplar in self._kept.items() if name == metric}


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
