"""Every metric once: its name, kind, labels, sentence, and how it is read from a snapshot.

Exporters, the reference page, dashboards and alerts are derived from `METRICS`; nothing else names a metric.
"""

from jaxobs.base import discovery
from jaxobs.facts.compilations import EAGER
from jaxobs.metrics.metric import Metric
from jaxobs.metrics.subjects import Subject

SUBJECTS: dict[str, tuple[Metric, ...]] = {
    (module.__doc__ or "").strip(): module.METRICS for module in discovery.modules(Subject)
}
"""The metrics by what they are about, a sentence."""

METRICS: tuple[Metric, ...] = tuple(each for metrics in SUBJECTS.values() for each in metrics)

EAGER_HELP = f"{EAGER} stands for operations that JAX dispatched on their own, outside any function."
