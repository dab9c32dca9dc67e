"""Figures of one cell of a notebook."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxobs.facts.compilations import Compilation
from jaxobs.facts.memory import ArrayGroup
from jaxobs.facts.verdicts import VerdictFinding


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """The compilations of one function for one cause, within a cell."""

    count: int
    seconds: float
    """All phases of all of them."""
    costliest: Compilation

    @property
    def loaded(self) -> bool:
        """True if the programs were loaded from the persistent cache."""
        return self.costliest.cache == "hit"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChange:
    """Memory of one device before and after a cell; None if unknown."""

    device: str
    array_bytes: tuple[int, int]
    """Bytes of live arrays."""
    in_use_bytes: tuple[int, int] | None = None
    """As the allocator reports it."""
    peak_bytes: int | None = None
    """The most that was ever in use, if the cell raised it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellMemory:
    """Memory that a cell took, by device and group of arrays."""

    devices: tuple[MemoryChange, ...] = ()
    grown: tuple[ArrayGroup, ...] = ()
    """Groups of live arrays that hold more bytes than before, the most first. `count` and `bytes_per_device` are what
    came in addition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell of a notebook: what it compiled and why, and where its time and memory went."""

    number: int | None
    """As the notebook shows it: `In [5]`."""
    seconds: float
    """Wall time until the last line had run."""
    time: Mapping[str, float]
    """The wall time by category of `TIME_CATEGORIES`; empty if the cell did not run on the thread that is charged."""
    compiled: tuple[Compiled, ...] = ()
    """The costliest first."""
    dropped: int = 0
    """Compilations beyond the bound on what is kept of a cell."""
    dropped_seconds: float = 0.0
    failed: bool = False
    """True if the cell raised."""
    still_computing: float | None = None
    """Seconds for which devices continued computing after the last line; None if nobody looked."""
    computing_before: bool = False
    """Whether a device was still computing what an earlier cell had started."""
    unfinished: bool = False
    """True if devices were still computing when jaxobs stopped waiting."""
    memory: CellMemory | None = None
    """None if nobody looked."""
    findings: tuple[VerdictFinding, ...] = field(default_factory=tuple)
    """Findings that were first seen in this cell, or that the cell added to."""

    @property
    def compilations(self) -> int:
        """How many programs it compiled or loaded."""
        return sum(each.count for each in self.compiled) + self.dropped

    @property
    def compile_seconds(self) -> float:
        """Seconds of its wall time that went into tracing, compiling and loading programs, as far as known."""
        charged = sum(self.time.get(name, 0.0) for name in ("trace", "compile", "cache_load"))
        if self.time:
            return charged
        return min(self.seconds, sum(each.seconds for each in self.compiled) + self.dropped_seconds)
