"""The form of a metric.

`read` gives the samples of a snapshot: pairs of label values, in the order of `labels`, and a value. It yields nothing
for what is not known: absent, never zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import TypeVar

from jaxobs.facts.functions import FunctionState, Histogram
from jaxobs.facts.snapshot import Snapshot

T = TypeVar("T")
Labels = tuple[str, ...]
Value = float | Histogram | tuple[int, float]
"""A number; a histogram; or, for a summary without quantiles, count and sum."""
Read = Callable[[Snapshot], Iterable[tuple[Labels, Value]]]

UNITS = ("seconds", "bytes", "ratio", "watts", "joules", "celsius", "hertz")
_KINDS = {"_total": "counter", "_info": "info"}


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric family. `jax_*` describes the workload, `accelerator_*` the devices, `jaxobs_*` the observer."""

    name: str
    """As in the exposition: counters end in `_total`, the unit is part of the name."""
    help: str
    read: Read
    labels: Labels = ()
    kind: str = ""
    """`histogram` or `summary`; otherwise `counter`, `info` or `gauge`, as the name says."""
    values: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Labels whose values are a closed set, with the set."""

    def __post_init__(self) -> None:
        if not self.help.endswith("."):
            raise ValueError(f"Metric `{self.name}`: its help is not a sentence.")
        if not self.kind:
            found = next((kind for ending, kind in _KINDS.items() if self.name.endswith(ending)), "gauge")
            object.__setattr__(self, "kind", found)

    @property
    def unit(self) -> str:
        """Unit in the name, one of `UNITS`; empty for what is merely counted."""
        last = self.name.removesuffix("_total").rpartition("_")[2]
        return last if last in UNITS else ""


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
