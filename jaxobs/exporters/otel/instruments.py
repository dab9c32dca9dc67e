"""The catalogue as OpenTelemetry's instruments: observable ones, which read the store when a reader collects.

A reader asks all instruments of one provider one after the other, in the order in which they were made. The first of
ours takes the samples, and the others give what it found. Histograms have no observable instrument: the same moment
records what they have gained into synchronous ones, before the reader comes to those; an exporter of ours takes them
whole.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from jaxobs.base.guard import guarded
from jaxobs.base.version import __version__
from jaxobs.exporters.forms.exposition import SnapshotCollector
from jaxobs.exporters.otel import conventions
from jaxobs.exporters.otel.points import Points, Series
from jaxobs.exporters.otel.providers import NAME
from jaxobs.facts.functions import Histogram
from jaxobs.metrics import otel_names
from jaxobs.metrics.catalogue import METRICS
from jaxobs.state.exemplars import Exemplars
from jaxobs.state.store import Store

_FIRST = "jaxobs_collect_seconds"
"""Metric whose instrument is made first: its callback takes the samples."""
_OBSERVED = ("counter", "gauge", "info")
MOST_VALUES = 20_000
"""Values of one series that are recorded at a time: about 0.1 s. The others follow at the next collection."""

_made: WeakKeyDictionary[Any, Instruments] = WeakKeyDictionary()


def of(store: Store, provider: Any, points: Points | None = None) -> Instruments:
    """Returns a meter provider's instruments, made once; without `points` histograms go value by value."""
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
        """Nothing is reported: in a forked child that has not used JAX, and when it is over."""
        self._store = store
        self._points = points
        self._collector = SnapshotCollector(store)
        self._latest: dict[str, list[tuple[Mapping[str, str | int], float]]] = {}
        self._histograms: dict[str, Any] = {}
        self._recorded: dict[tuple[str, tuple[str | int, ...]], Recorded] = {}
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
        latest: dict[str, list[tuple[Mapping[str, str | int], float]]] = {name: [] for name in self._latest}
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
                attributes: conventions.Attributes = dict(zip(metric.labels, labels, strict=True))
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


# -------------------------------------------------------------------------------------------------- histograms


@dataclass(slots=True)
class Recorded:
    """Values of one series that were recorded so far: the SDK has no instrument that takes whole buckets.

    What was observed since the last time is recorded as so many values in each bucket whose sum is the observed one.
    Counts and sums are exact; where a value lies inside its bucket is made up, and so are the smallest and the largest
    one, which the SDK keeps. (Without them it would export infinities.)
    """

    counts: list[int] = field(default_factory=list)
    sum: float = 0.0

    def values(self, now: Histogram, most: int = MOST_VALUES) -> Iterator[float]:
        """Yields values until counts and sum are those of `now`, which counts from nothing if it has fewer."""
        if (
            not self.counts
            or len(self.counts) != len(now.counts)
            or any(new < old for new, old in zip(now.counts, self.counts, strict=True))
        ):
            self.counts, self.sum = [0] * len(now.counts), 0.0
        missing = [new - old for new, old in zip(now.counts, self.counts, strict=True)]
        if sum(missing) == 0:
            return
        amount = now.sum - self.sum
        share = min(1.0, most / sum(missing))
        if share < 1.0:
            amount, missing = amount * share, [math.floor(count * share) for count in missing]
        self.counts = [old + count for old, count in zip(self.counts, missing, strict=True)]
        for value in _with_sum(now.bounds, missing, amount):
            self.sum += value
            yield value


def _with_sum(bounds: tuple[float, ...], counts: list[int], amount: float) -> Iterator[float]:
    """Returns values for each bucket, `amount` in all, or as near to it as the buckets allow."""
    filled = [(count, *_bucket(bounds, position)) for position, count in enumerate(counts) if count]
    least = sum(count * low for count, low, _ in filled)
    if counts[-1]:
        # Without a bound of its own: as far as the sum asks for.
        count, low, _ = filled[-1]
        filled[-1] = count, low, low + max(0.0, amount - least) / count
    most = sum(count * high for count, _, high in filled)
    share = 0.0 if most <= least else min(1.0, max(0.0, (amount - least) / (most - least)))
    total, left = 0.0, sum(counts)
    for count, low, high in filled:
        value = min(high, max(low, low + share * (high - low)))
        for _ in range(count):
            left -= 1
            # The last one takes what rounding has left over.
            each = value if left else min(high, max(low, amount - total))
            total += each
            yield each


def _bucket(bounds: tuple[float, ...], position: int) -> tuple[float, float]:
    """The smallest and the largest value of a bucket: above the bound below it, and at most its own."""
    low = math.nextafter(bounds[position - 1], math.inf) if position else 0.0
    return low, bounds[position] if position < len(bounds) else math.inf
