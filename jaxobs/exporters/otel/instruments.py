"""The catalogue as OpenTelemetry's instruments: observable ones, which read the store when a reader collects.

A reader asks all instruments of one provider one after the other, in the order in which they were made. The first of
ours takes the samples, and the others give what it found. Histograms have no observable instrument: the same moment
records what they have gained into synchronous ones, before the reader comes to those; an exporter of ours takes them
whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from jaxobs.base.guard import guarded
from jaxobs.base.version import __version__
from jaxobs.exporters.forms.exposition import SnapshotCollector
from jaxobs.exporters.otel import conventions
from jaxobs.exporters.otel.histograms import Recorded
from jaxobs.exporters.otel.points import Points, Series
from jaxobs.exporters.otel.providers import NAME
from jaxobs.facts.histograms import Histogram
from jaxobs.metrics import otel_names
from jaxobs.metrics.catalogue import METRICS
from jaxobs.metrics.metric import Labels
from jaxobs.state.exemplars import Exemplars
from jaxobs.state.store import Store

_FIRST = "jaxobs_collect_seconds"
"""Metric whose instrument is made first: its callback takes the samples."""
_OBSERVED = ("counter", "gauge", "info")


_made: WeakKeyDictionary[Any, Instruments] = WeakKeyDictionary()


def of(store: Store, provider: Any, points: Points | None = None) -> Instruments:
    """The instruments of a meter provider, made when first asked for.

    Args:
      points: takes whole histograms; None if they are to be recorded value by value.
    """
    found = _made.get(provider)
    if found is None:
        found = _made[provider] = Instruments(store, provider, points)
    else:
        found.restart(store)
    return found


class Instruments:
    """The instruments of one meter provider."""

    def __init__(self, store: Store, provider: Any, points: Points | None = None) -> None:
        self.silent = False
        """Nothing is told: in a forked child that has not used JAX, and when it is over."""
        self._store = store
        self._points = points
        self._collector = SnapshotCollector(store)
        self._latest: dict[str, list[tuple[Mapping[str, str], float]]] = {}
        self._histograms: dict[str, Any] = {}
        self._recorded: dict[tuple[str, Labels], Recorded] = {}
        self._meter = provider.get_meter(NAME, __version__)
        for metric in sorted(METRICS, key=lambda each: each.name != _FIRST):
            if metric.kind in _OBSERVED:
                self._observe(otel_names.name(metric), otel_names.unit(metric), metric.kind, metric.help)
        for each in conventions.INSTRUMENTS:
            self._observe(each.name, each.unit, each.kind, each.help)

    def restart(self, store: Store) -> None:
        """Tells again, of what happens from now on: a provider keeps its instruments, and knows each name once."""
        self._store, self._collector, self.silent = store, SnapshotCollector(store), False

    def forked(self) -> None:
        """In a forked child, where everything is counted from nothing."""
        self.silent = True
        self._recorded = {}

    def _observe(self, name: str, unit: str, kind: str, help: str) -> None:
        create = {
            "counter": self._meter.create_observable_counter,
            "updowncounter": self._meter.create_observable_up_down_counter,
        }.get(kind, self._meter.create_observable_gauge)
        create(name, [self._callback(name, first=not self._latest)], unit, help)
        self._latest[name] = []

    def _callback(self, name: str, *, first: bool) -> Callable[[Any], list[Any]]:
        from opentelemetry.metrics import Observation

        def observe(_: Any) -> list[Any]:
            with guarded("otlp.metrics"):
                if first:
                    self._collect()
                return [Observation(value, attributes) for attributes, value in self._latest[name]]
            return []

        return observe

    def _collect(self) -> None:
        """Takes the samples: what the instruments give until the next collection."""
        latest: dict[str, list[tuple[Mapping[str, str], float]]] = {name: [] for name in self._latest}
        if self.silent:
            self._latest = latest
            if self._points is not None:
                self._points.series = []
            return
        series: list[Series] = []
        began = time.perf_counter()
        snapshot, traced = self._store.snapshot(), self._store.part(Exemplars)
        for metric, samples in self._collector.samples(snapshot):
            name = otel_names.name(metric)
            for labels, value in samples:
                attributes: Mapping[str, str] = dict(zip(metric.labels, labels, strict=True))
                if isinstance(value, tuple):
                    value = Histogram((), (value[0],), value[1])
                if isinstance(value, Histogram):
                    exemplars = traced.of(metric.name) if metric.kind == "histogram" else {}
                    found = {bucket: each for (known, bucket), each in exemplars.items() if known == labels}
                    series.append(Series(name, otel_names.unit(metric), metric.help, attributes, value, found))
                else:
                    latest[name].append((attributes, value))
        for instrument, attributes, value in conventions.samples(snapshot):
            latest[instrument.name].append((attributes, value))
        for histogram, attributes, value in conventions.histograms(snapshot):
            series.append(Series(histogram.name, histogram.unit, histogram.help, attributes, value, {}))
        if self._points is not None:
            self._points.series = series
        else:
            for each in series:
                self._record(each)
        self._latest = latest
        self._store.collect_seconds = time.perf_counter() - began

    def _record(self, series: Series) -> None:
        instrument = self._histograms.get(series.name)
        if instrument is None:
            instrument = self._histograms[series.name] = self._meter.create_histogram(
                series.name, series.unit, series.help, explicit_bucket_boundaries_advisory=list(series.value.bounds)
            )
        recorded = self._recorded.setdefault((series.name, tuple(series.attributes.values())), Recorded())
        for each in recorded.values(series.value):
            instrument.record(each, series.attributes)
