"""A snapshot in Prometheus' words: the catalogue's metrics as families, and as text.

Rendered family by family, with the interpreter offered to other threads in between; a family that did not change
since the last scrape is not rendered again, and of one that did only the numbers are.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from jaxobs.base import threads
from jaxobs.base.guard import guarded
from jaxobs.facts.functions import Histogram
from jaxobs.facts.snapshot import Snapshot
from jaxobs.findings.verdict import verdict
from jaxobs.metrics.catalogue import METRICS
from jaxobs.metrics.metric import Labels, Metric, Value
from jaxobs.state.exemplars import Bucket, Exemplar, Exemplars
from jaxobs.state.store import Store

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family

MOST_SERIES = 2500
_RESERVED = 100
"""Series of these that are kept for the observer's own: they say what was cut off."""
_BY_URGENCY = sorted(METRICS, key=lambda metric: "function" in metric.labels)
"""Metrics in the order in which they are admitted: if there are too many series, functions are what there is too much
of."""

_CLIENTS = ("process_", "python_gc_")
"""Metrics that `prometheus_client` brings into its registry itself."""

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_END = b"# EOF\n"
_MOST_REFUSED = 50_000
_STRETCH = 0.001
"""Seconds for which a scrape keeps the interpreter to itself."""


class SnapshotCollector:
    """A Prometheus collector over a store, for your own registry or for ours."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._admitted: set[tuple[str, Labels]] = set()
        self._refused: set[tuple[str, Labels]] = set()
        self._series = 0
        self._lock = threads.Lock()

    def describe(self) -> list[Family]:
        """The families without samples: registering collects nothing."""
        return [_family(metric, []) for metric in METRICS if not metric.name.startswith(_CLIENTS)]

    def collect(self) -> Iterator[Family]:
        """Yields one family for each metric of the catalogue that has samples, but for those of the client itself."""
        for metric, samples in self.samples():
            if not metric.name.startswith(_CLIENTS):
                yield _family(metric, samples)

    def samples(self, snapshot: Snapshot | None = None) -> Iterator[tuple[Metric, list[tuple[Labels, Value]]]]:
        """Every metric with its samples, within the bound on series; what does not fit is counted, once."""
        snapshot = self._store.snapshot() if snapshot is None else snapshot
        with guarded("verdict"):
            # Only the headline, of which nothing is rendered, asks for functions, and there may be many.
            snapshot = replace(snapshot, verdict=verdict(replace(snapshot, functions=())))
        found = {}
        pace = _Pace()
        for metric in _BY_URGENCY:
            with self._lock:
                found[metric.name] = [each for each in metric.read(snapshot) if self._admit(metric, each)]
            pace.offer()
        for metric in METRICS:
            if found[metric.name] or not metric.labels:
                yield metric, found[metric.name]

    def _admit(self, metric: Metric, sample: tuple[Labels, Value]) -> bool:
        labels, value = sample
        key = (metric.name, labels)
        if key in self._admitted:
            return True
        cost = len(value.counts) + 2 if isinstance(value, Histogram) else 2 if metric.kind == "summary" else 1
        most = MOST_SERIES if metric.name.startswith("jaxobs_") else MOST_SERIES - _RESERVED
        if self._series + cost > most:
            if key not in self._refused and len(self._refused) < _MOST_REFUSED:
                self._refused.add(key)
                self._store.drop("max_series", cost)
            return False
        self._admitted.add(key)
        self._series += cost
        return True


def _family(metric: Metric, samples: Iterable[tuple[Labels, Value]]) -> Family:
    from prometheus_client import core

    labels = list(metric.labels)
    if metric.kind == "counter":
        counter = core.CounterMetricFamily(metric.name.removesuffix("_total"), metric.help, labels=labels)
        for values, value in samples:
            counter.add_metric(values, value)  # type: ignore[arg-type]
        return counter
    if metric.kind == "histogram":
        histogram = core.HistogramMetricFamily(metric.name, metric.help, labels=labels)
        for values, value in samples:
            assert isinstance(value, Histogram)
            histogram.add_metric(values, _cumulative(value), value.sum)
        return histogram
    if metric.kind == "summary":
        summary = core.SummaryMetricFamily(metric.name, metric.help, labels=labels)
        for values, value in samples:
            count, total = value  # type: ignore[misc]
            summary.add_metric(values, count_value=count, sum_value=total)
        return summary
    gauge = core.GaugeMetricFamily(metric.name, metric.help, labels=labels)
    for values, value in samples:
        gauge.add_metric(values, value)  # type: ignore[arg-type]
    return gauge


def _cumulative(histogram: Histogram) -> list[tuple[str, float]]:
    total, buckets = 0, []
    for bound, count in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
        total += count
        buckets.append(("+Inf" if bound == float("inf") else repr(bound), float(total)))
    return buckets


class Renderer:
    """Text of a store's metrics. Families that did not change since the last time are taken from then."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._collector = SnapshotCollector(store)
        self._rendered: dict[tuple[str, str], tuple[list[tuple[Labels, Value]], Mapping[Bucket, Exemplar], bytes]] = {}
        self._names: dict[tuple[str, Labels], tuple[str, ...]] = {}
        """Names and labels of every series, as written; as many as the collector admits."""

    def render(self, content_type: str = TEXT) -> bytes:
        """All metrics in the given exposition format (`TEXT` or `OPENMETRICS`)."""
        started = time.perf_counter()
        pace = _Pace()
        parts = []
        exemplars = self._store.part(Exemplars) if content_type == OPENMETRICS else None
        for metric, samples in self._collector.samples():
            traced = exemplars.of(metric.name) if exemplars is not None and metric.kind == "histogram" else {}
            kept = self._rendered.get((metric.name, content_type))
            if kept is None or kept[0] != samples or kept[1] != traced:
                text = _header(metric, content_type) + "".join(self._lines(metric, samples, traced))
                kept = self._rendered[metric.name, content_type] = (samples, traced, text.encode())
            parts.append(kept[2])
            pace.offer()
        if content_type == OPENMETRICS:
            parts.append(_END)
        self._store.collect_seconds = time.perf_counter() - started
        return b"".join(parts)

    def _lines(
        self, metric: Metric, samples: Iterable[tuple[Labels, Value]], traced: Mapping[Bucket, Exemplar]
    ) -> Iterator[str]:
        for labels, value in samples:
            names = self._names.get((metric.name, labels))
            if names is None:
                names = self._names[metric.name, labels] = tuple(_names(metric, labels, value))
            if traced:
                yield from _with_exemplars(zip(names, _numbers(value), strict=True), labels, traced)
                continue
            for name, number in zip(names, _numbers(value), strict=True):
                yield f"{name} {number}\n"


class _Pace:
    """Offers the interpreter to other threads every now and then: each time may cost us 5 ms if they are busy."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def offer(self) -> None:
        """To be called between pieces of work that take much less than `_STRETCH`."""
        if time.perf_counter() - self._last > _STRETCH:
            time.sleep(0)
            self._last = time.perf_counter()


def _header(metric: Metric, content_type: str) -> str:
    name, sentence = metric.name, _escaped(metric.help, quotes=content_type == OPENMETRICS)
    if content_type == OPENMETRICS:
        name = name.removesuffix("_total")
    kind = "gauge" if metric.kind == "info" else metric.kind
    return f"# HELP {name} {sentence}\n# TYPE {name} {kind}\n"


def _names(metric: Metric, labels: Labels, value: Value) -> Iterator[str]:
    """Names with labels of the series that one sample becomes, in the order of `_numbers`."""
    pairs = [f'{name}="{_escaped(text)}"' for name, text in zip(metric.labels, labels, strict=True)]
    if isinstance(value, Histogram):
        for bound in value.bounds:
            yield _series(f"{metric.name}_bucket", [*pairs, f'le="{bound!r}"'])
        yield _series(f"{metric.name}_bucket", [*pairs, 'le="+Inf"'])
    if isinstance(value, Histogram | tuple):
        yield _series(f"{metric.name}_count", pairs)
        yield _series(f"{metric.name}_sum", pairs)
    else:
        yield _series(metric.name, pairs)


def _series(name: str, pairs: list[str]) -> str:
    return f"{name}{{{','.join(pairs)}}}" if pairs else name


def _numbers(value: Value) -> Iterator[str]:
    if isinstance(value, Histogram):
        yield from map(str, itertools.accumulate(value.counts))
        value = sum(value.counts), value.sum
    if isinstance(value, tuple):
        yield from map(_number, value)
    else:
        yield _number(value)


def _with_exemplars(
    lines: Iterable[tuple[str, str]], labels: Labels, traced: Mapping[Bucket, Exemplar]
) -> Iterator[str]:
    for position, (name, number) in enumerate(lines):
        exemplar = traced.get((labels, position))
        yield f"{name} {number}{'' if exemplar is None else _exemplar(exemplar)}\n"


def _exemplar(exemplar: Exemplar) -> str:
    ids = f'trace_id="{exemplar.trace_id}",span_id="{exemplar.span_id}"'
    return f" # {{{ids}}} {_number(exemplar.value)} {exemplar.time:.3f}"


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(int(value))
    return repr(value) if math.isfinite(value) else "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def _escaped(text: str, *, quotes: bool = True) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text
