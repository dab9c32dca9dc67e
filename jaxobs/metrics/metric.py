"""The form of a metric.

`read` gives the samples of a snapshot: pairs of label values, in the order of `labels`, and a value. It yields nothing
for what is not known: absent, never zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import TypeVar

from jaxobs.facts.functions import FunctionState
from jaxobs.facts.histograms import Histogram
from jaxobs.facts.snapshot import Snapshot

T = TypeVar("T")
Labels = tuple[str, ...]
Value = float | Histogram | tuple[int, float]
"""A number; a histogram; or, for a summary without quantiles, count and sum."""
Read = Callable[[Snapshot], Iterable[tuple[Labels, Value]]]

KINDS = ("counter", "gauge", "histogram", "summary", "info")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric family. `jax_*` describes the workload, `accelerator_*` the devices, `jaxobs_*` the observer."""

    name: str
    """As in the exposition: counters end in `_total`, the unit is part of the name."""
    kind: str
    help: str
    read: Read
    labels: Labels = ()
    unit: str = ""
    """`seconds`, `bytes`, `ratio`, `joules`, ...; empty for what is merely counted."""
    values: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Labels whose values are a closed set, with the set."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"Metric `{self.name}` has kind {self.kind!r}. Kinds: {', '.join(KINDS)}.")
        if (self.kind == "counter") != self.name.endswith("_total"):
            raise ValueError(f"Metric `{self.name}`: counters, and only counters, end in `_total`.")
        if not self.help.endswith("."):
            raise ValueError(f"Metric `{self.name}`: its help is not a sentence.")


def per(
    rows: Callable[[Snapshot], Iterable[T]],
    name: Callable[[T], str],
    read: Callable[[T], Iterable[tuple[Labels, Value | None]]],
) -> Read:
    """Returns a `Metric.read` from what is read of each row; its name becomes the first label, and None is absent."""

    def samples(snapshot: Snapshot) -> Iterator[tuple[Labels, Value]]:
        for row in rows(snapshot):
            first = name(row)
            for labels, value in read(row):
                if value is not None:
                    yield (first, *labels), value

    return samples


def per_function(read: Callable[[FunctionState], Iterable[tuple[Labels, Value | None]]]) -> Read:
    """Returns a `Metric.read` from what is read of each function."""
    return per(attrgetter("functions"), attrgetter("name"), read)
