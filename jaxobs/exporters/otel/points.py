"""Histograms as whole points, put next to what the SDK collected, on their way to an exporter of ours.

That costs the same for one observation and for a million. Providers of others do not let it in: there values are
recorded one by one (see `histograms`).
"""

import dataclasses
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxobs.base.version import __version__
from jaxobs.facts.functions import Histogram
from jaxobs.state.exemplars import Exemplar


@dataclass(frozen=True, slots=True)
class Series:
    """A series of a histogram."""

    name: str
    unit: str
    help: str
    attributes: Mapping[str, str | int]
    value: Histogram
    exemplars: Mapping[int, Exemplar]
    """Exemplars by the position of the bucket."""


class Points:
    """Points that the next export takes along."""

    def __init__(self, scope: str) -> None:
        self.series: list[Series] = []
        self._scope = scope
        preference = os.environ.get("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "").strip().lower()
        self._delta = preference in ("delta", "lowmemory")
        self._since = time.time_ns()
        self._before: dict[tuple[str, tuple[str | int, ...]], Histogram] = {}

    def added_to(self, data: Any) -> Any:
        """The collected metrics with the histograms among them: a copy."""
        from opentelemetry.sdk.metrics.export import AggregationTemporality, Metric
        from opentelemetry.sdk.metrics.export import Histogram as Data

        kind = AggregationTemporality.DELTA if self._delta else AggregationTemporality.CUMULATIVE
        now = time.time_ns()
        metrics: dict[str, Any] = {}
        for series in self.series:
            point = self._point(series, now)
            if point is None:
                continue
            if series.name not in metrics:
                metrics[series.name] = Metric(series.name, series.help, series.unit, Data([], kind))
            metrics[series.name].data.data_points.append(point)
        if self._delta:
            self._since = now
        return _with_metrics(data, self._scope, list(metrics.values()))

    def _point(self, series: Series, now: int) -> Any:
        from opentelemetry.sdk.metrics import Exemplar as Found
        from opentelemetry.sdk.metrics.export import HistogramDataPoint

        value = series.value
        if self._delta:
            value = self._gained(series)
        if not any(value.counts):
            return None
        exemplars = [
            Found({}, each.value, round(each.time * 1e9), int(each.span_id, 16), int(each.trace_id, 16))
            for each in series.exemplars.values() if not self._delta or each.time * 1e9 >= self._since
        ]  # fmt: skip
        nothing: Any = None  # our buckets don't know the smallest and the largest value
        return HistogramDataPoint(
            attributes=series.attributes, start_time_unix_nano=self._since, time_unix_nano=now,
            count=sum(value.counts), sum=value.sum, bucket_counts=value.counts, explicit_bounds=value.bounds,
            min=nothing, max=nothing, exemplars=exemplars,
        )  # fmt: skip

    def _gained(self, series: Series) -> Histogram:
        key, value = (series.name, tuple(series.attributes.values())), series.value
        before, self._before[key] = self._before.get(key), value
        if before is None or any(new < old for new, old in zip(value.counts, before.counts, strict=True)):
            return value
        counts = tuple(new - old for new, old in zip(value.counts, before.counts, strict=True))
        return Histogram(value.bounds, counts, value.sum - before.sum)


def _with_metrics(data: Any, scope: str, metrics: list[Any]) -> Any:
    """The data with more metrics of a scope, which it has already if anything was collected."""
    resources = [
        dataclasses.replace(
            resource,
            scope_metrics=[
                dataclasses.replace(each, metrics=[*each.metrics, *metrics])
                if (each.scope.name, each.scope.version) == (scope, __version__) else each
                for each in resource.scope_metrics
            ],
        )
        for resource in data.resource_metrics
    ]  # fmt: skip
    return dataclasses.replace(data, resource_metrics=resources)
