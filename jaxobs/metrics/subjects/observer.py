"""jaxobs itself."""

from __future__ import annotations

from jaxobs.metrics.metric import Metric

METRICS = (
    Metric("jaxobs_internal_errors_total", "Failures of jaxobs itself, which it swallowed.",
           lambda s: [((where,), n) for where, n in s.observer.internal_errors.items()], ("where",)),
    Metric("jaxobs_dropped_series_total", "Data dropped because of a bound of jaxobs.",
           lambda s: [((reason,), n) for reason, n in s.observer.dropped.items()], ("reason",)),
    Metric("jaxobs_collect_seconds", "Duration of the previous scrape.",
           lambda s: [] if s.observer.collect_seconds is None else [((), s.observer.collect_seconds)]),
    Metric("jaxobs_capability", "What jaxobs can observe in this version of JAX: 1, or 0 if a release moved it.",
           lambda s: [((name,), float(on)) for name, on in s.observer.capabilities.items()], ("name",)),
)  # fmt: skip
