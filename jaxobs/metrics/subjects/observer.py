"""jaxobs itself."""

from __future__ import annotations

from jaxobs.metrics.metric import Metric

METRICS = (
    Metric(
        name="jaxobs_internal_errors_total", kind="counter", labels=("where",),
        read=lambda s: [((where,), n) for where, n in s.observer.internal_errors.items()],
        help="Failures of jaxobs itself, which it swallowed.",
    ),
    Metric(
        name="jaxobs_dropped_series_total", kind="counter", labels=("reason",),
        read=lambda s: [((reason,), n) for reason, n in s.observer.dropped.items()],
        help="Data dropped because of a bound of jaxobs.",
    ),
    Metric(
        name="jaxobs_collect_seconds", kind="gauge", unit="seconds",
        read=lambda s: [] if s.observer.collect_seconds is None else [((), s.observer.collect_seconds)],
        help="Duration of the previous scrape.",
    ),
    Metric(
        name="jaxobs_capability", kind="gauge", labels=("name",),
        read=lambda s: [((name,), float(on)) for name, on in s.observer.capabilities.items()],
        help="What jaxobs can observe in this version of JAX: 1, or 0 if a release moved it.",
    ),
)  # fmt: skip
