"""Exemplars: for a bucket of a histogram, the latest observation that a trace was recorded of."""

from __future__ import annotations

import bisect
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

MOST = 512
"""Buckets that have one; beyond that, the one that is oldest goes."""


@dataclass(frozen=True, slots=True)
class Exemplar:
    """One observation, and the span that shows what happened."""

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
    """Those of this process. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._kept: OrderedDict[tuple[str, Bucket], Exemplar] = OrderedDict()

    def put(
        self, metric: str, labels: tuple[str, ...], bounds: tuple[float, ...], exemplar: Exemplar, *,
        unless_known: bool = False,
    ) -> None:  # fmt: skip
        """An observation of a metric, a histogram with these bounds, has a trace.

        Args:
          unless_known: whether one that is there for the same observation stays.
        """
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
