"""The functions of a program: a row each, up to a bound, and one for all others. Changed under the store's lock."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from jaxobs.base.config import Settings
from jaxobs.facts.compilations import EAGER, OTHER, Compilation
from jaxobs.facts.errors import OutOfMemory
from jaxobs.facts.functions import FunctionState, Histogram, ProgramState
from jaxobs.metrics.buckets import PHASE_BOUNDS
from jaxobs.state.call_stats import CallStats, MutableHistogram, label

MOST_DISPATCH_HISTOGRAMS = 40
MOST_SITES = 8


@dataclass(slots=True)
class _Row:
    """Figures of one function."""

    name: str
    stats: CallStats | None = None
    compilations: dict[str, Counter[str]] = field(default_factory=dict)
    sites: Counter[str] = field(default_factory=Counter)
    phase_seconds: dict[str, float] = field(default_factory=dict)
    phase_counts: Counter[str] = field(default_factory=Counter)
    cache: Counter[str] = field(default_factory=Counter)
    last_compiled: float | None = None
    last_reason: str | None = None
    program: ProgramState | None = None
    out_of_memory: Counter[str] = field(default_factory=Counter)
    shows_dispatch: bool = False
    """Whether the snapshot shows the function's histograms."""

    def frozen(self) -> FunctionState:
        stats = self.stats
        falls, why = ({}, None) if stats is None else stats.falls()
        device, skipped = (None, {}) if stats is None else stats.device()
        return FunctionState(
            name=self.name, calls=None if stats is None else stats.calls,
            compilations={cause: dict(by_cache) for cause, by_cache in self.compilations.items()},
            sites=dict(self.sites), phase_seconds=dict(self.phase_seconds), phase_counts=dict(self.phase_counts),
            cache=dict(self.cache),
            errors={} if stats is None else stats.errors(), error_kinds={} if stats is None else stats.error_kinds(),
            fastpath_misses=falls, fastpath_reason=why, fastpath_watched=stats is not None and stats.watched,
            dispatch=stats.dispatch() if stats is not None and self.shows_dispatch else None,
            device=device if self.shows_dispatch else None, device_skipped=skipped, last_compiled=self.last_compiled,
            last_reason=self.last_reason, program=self.program, out_of_memory=dict(self.out_of_memory),
        )  # fmt: skip

    def keep_program(self, event: Compilation) -> None:
        """The latest program, which one that a transformation derived does not push out."""
        if self.program is None or event.transform is None or self.program.transform is not None:
            self.program = ProgramState(
                time=event.time, fingerprint=event.fingerprint, transform=event.transform, flops=event.flops,
                bytes_accessed=event.bytes_accessed, memory=event.memory,
            )  # fmt: skip


class FunctionRows:
    """A row for each function, and the time of each phase over all of them."""

    def __init__(self, settings: Settings, dropped: Counter[str]) -> None:
        self._settings = settings
        self._dropped = dropped
        self._rows: dict[str, _Row] = {}
        self._phases: dict[str, MutableHistogram] = {}

    def configure(self, settings: Settings) -> None:
        """Puts new bounds in force."""
        self._settings = settings
        for stats in self.all_call_stats():
            stats.time(settings.dispatch_timing)

    def after_fork(self, dropped: Counter[str]) -> FunctionRows:
        """In a forked child: the wrappers and where they count, with nothing counted."""
        fresh = FunctionRows(self._settings, dropped)
        for name, row in self._rows.items():
            if row.stats is not None:
                row.stats.reset()
                fresh._rows[name] = _Row(name, stats=row.stats, shows_dispatch=row.shows_dispatch)
        return fresh

    def see_compilation(self, event: Compilation) -> None:
        """Counts a compilation."""
        row = self._row(EAGER if event.eager else event.function)
        row.compilations.setdefault(event.cause, Counter())[event.cache] += 1
        row.cache[event.cache] += 1
        if event.call_site is not None and (event.call_site in row.sites or len(row.sites) < MOST_SITES):
            row.sites[event.call_site] += 1
        for phase, seconds in event.phases.items():
            row.phase_seconds[phase] = row.phase_seconds.get(phase, 0.0) + seconds
            row.phase_counts[phase] += 1
            self._phases.setdefault(phase, MutableHistogram(PHASE_BOUNDS)).observe(seconds)
        row.last_compiled, row.last_reason = event.time, event.reason
        if row.name not in (EAGER, OTHER):
            row.keep_program(event)

    def see_out_of_memory(self, event: OutOfMemory) -> None:
        """Counts a call that ran out of memory."""
        self._row(event.function).out_of_memory[event.device or ""] += 1

    def set_program(self, function: str, compiled: float, **found: Any) -> None:
        """Fields of a function's `ProgramState` that were read later, if it is still the one that was compiled then."""
        row = self._rows.get(label(function))
        if row is not None and row.program is not None and row.program.time == compiled:
            row.program = dataclasses.replace(row.program, **found)

    def call_stats(self, name: str) -> CallStats:
        """Returns the counters of the function called `name`, which all wrappers of that name share."""
        row = self._row(name)
        if row.stats is None:
            row.stats = CallStats()
            row.stats.time(self._settings.dispatch_timing)
            shown = sum(each.shows_dispatch for each in self._rows.values())
            row.shows_dispatch = shown < MOST_DISPATCH_HISTOGRAMS
            if not row.shows_dispatch:
                self._dropped["dispatch_histograms"] += 1
        return row.stats

    def all_call_stats(self) -> list[CallStats]:
        """Returns the counters of all wrappers."""
        return [row.stats for row in self._rows.values() if row.stats is not None]

    def name_of(self, stats: CallStats) -> str | None:
        """The function that a wrapper counts for; None where it shares its row with others."""
        return next((name for name, row in self._rows.items() if row.stats is stats and name != OTHER), None)

    def calls(self) -> dict[str, int]:
        """Calls so far of each function that is counted; what shares a row with others is left out."""
        rows = self._rows.items()
        return {name: row.stats.calls for name, row in rows if row.stats is not None and name != OTHER}

    def frozen(self) -> tuple[FunctionState, ...]:
        """Each as it is now."""
        return tuple(row.frozen() for row in self._rows.values())

    def phases(self) -> dict[str, Histogram]:
        """Seconds by phase over all functions."""
        return {phase: histogram.frozen() for phase, histogram in self._phases.items()}

    def _row(self, name: str) -> _Row:
        name = label(name)
        row = self._rows.get(name)
        if row is None:
            own = len(self._rows) - (EAGER in self._rows) - (OTHER in self._rows)
            if own >= self._settings.max_functions and name not in (EAGER, OTHER):
                self._dropped["max_functions"] += 1
                return self._row(OTHER)
            row = self._rows[name] = _Row(name)
        return row
