"""Leaks: what grows for as long as the program runs. Samples of memory in, findings out.

A kind of leak names the series that may grow and says what to report one that does. `jaxobs.findings.growth` decides
for all what is growth, and what only fills up or comes and goes.
"""

import dataclasses
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from jaxobs.facts.compilations import Compilation
from jaxobs.facts.events import timestamp
from jaxobs.facts.findings import Finding
from jaxobs.facts.memory import ArrayGroup
from jaxobs.findings import all_kinds
from jaxobs.findings.cases import UNKNOWN, Case, likely
from jaxobs.findings.growth import EARLY_CALLS, LEAST_RISES, LEAST_RISES_AT_END, LIKELY_RISES, Floor, Point, Run

MOST_FLOORS = 1024
"""Series of one kind that are remembered, with those that are gone for now."""
MOST_CASES = 20
SOON = 3600.0
"""Seconds until memory is full, at its pace, from which on growth is what to fix first, and is reported early: ..."""
EARLY = 20.0
"""... when it has gone on for so many seconds, in as many samples as are enough at the end of the program."""
LIKELY_BYTES = 16 * 2**20
"""Growth in a short program that is a likely leak: losses that it keeps are not."""
_UNLESS = " If the program uses at its end all that it kept, as collected results, no action is needed."
HOST = "host"
"""The host's memory in `Sample.left`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The memory of a process at a sample: the evidence for leaks. Sizes in bytes."""

    time: float
    calls: Mapping[str, int]
    """Calls of each function that is counted."""
    groups: Sequence[ArrayGroup] = ()
    """All live arrays, the largest groups first."""
    call_sites: Callable[[tuple[Any, ...]], Mapping[str, int]] = lambda key: {}
    """Lines that made the newest arrays of a group, by its key."""
    left: Mapping[str, int] = field(default_factory=dict)
    """Free bytes on each device, where its allocator says, and on the `HOST`."""
    executables: int | None = None
    resident: int | None = None
    """The process's memory on the host, without the live arrays of the CPU backend."""
    compilations: Callable[[], Sequence[Compilation]] = lambda: ()
    """The latest compilations."""
    outputs: Callable[[], Mapping[str, int]] = dict
    """Bytes that one call of each function returns on a device, by its latest program."""


@dataclass(slots=True)
class Growing:
    """Growth that was reported, or is about to be: one series, or several that grow together."""

    kind: str
    subject: str
    runs: dict[Hashable, Run]
    """Runs by series."""
    is_likely: bool = False
    """Known from the few samples of a program that has ended."""
    told: float = 0.0
    finding: Finding | None = None
    fell: Point | None = None
    """Point at which most was freed: the case is over if the program continues without it, not if the program ends."""

    @property
    def run(self) -> Run:
        """Run of the series that it was found by."""
        return next(iter(self.runs.values()))

    @property
    def grown(self) -> float:
        """Growth in all its series."""
        return sum(run.grown for run in self.runs.values())


class Leak(Protocol):
    """A kind of leak: the series that it names, and its words on those that grow."""

    def series(self, sample: Sample) -> Iterable[tuple[Hashable, float | None]]:
        """Yields what may grow and how large it is, None if unknown; of very many the most important first."""

    def matters(self, key: Hashable, run: Run, sample: Sample, cases: Sequence[Growing]) -> bool:
        """Returns whether a series grew by enough to be reported, besides the active cases of all kinds."""

    def full_in(self, run: Run, key: Hashable, sample: Sample) -> float:
        """Returns the seconds until memory is full at a run's pace; infinity if unknown, or after less than `EARLY`."""

    def belongs(self, key: Hashable, run: Run, case: Growing, sample: Sample) -> bool:
        """Returns whether a series is part of a case that is."""

    def subject(self, key: Hashable) -> str:
        """Returns what the series is about."""

    def tell(self, case: Growing, sample: Sample) -> Case:
        """Returns the words on a case."""


class Leaks:
    """All kinds of leaks in one process. Not thread-safe: its owner samples on one thread at a time."""

    def __init__(self) -> None:
        cases: list[Growing] = []
        self._kinds = [_Watched(each.NAME, each.leak(), cases) for each in all_kinds.leaks()]
        self._number = 0
        self._latest: tuple[Sample, Point] | None = None

    def see(self, sample: Sample) -> Iterable[tuple[Finding, bool]]:
        """Takes in a sample; the findings that last or have just ended, and whether each is news."""
        now = Point(self._number, sample.time, 0.0, sample.calls)
        before = None if self._latest is None else self._latest[1]
        self._number += 1
        self._latest = sample, now
        for watched in self._kinds:
            watched.take(sample, now, before)
            yield from watched.findings(sample, now)

    def tells(self, key: Hashable) -> bool:
        """Returns whether a series is part of a finding that is."""
        return any(each.tells(key) for each in self._kinds)

    def at_end(self, last: Sample | None = None) -> Iterable[tuple[Finding, bool]]:
        """Returns findings on growth up to the end of the program, once: it will not be released any more.

        Args:
          last: a sample after the end. It counts for growth that is still there, and not for what is gone by then. Its
            memory of the process does not count: what the arrays have left is the allocator's.
        """
        latest, self._latest = self._latest, None
        last = None if last is None else dataclasses.replace(last, resident=None)
        if latest is not None:
            for watched in self._kinds:
                if last is not None:
                    watched.take_higher(last, Point(self._number, last.time, 0.0, last.calls))
                yield from watched.findings(*latest, at_end=True)


class _Watched:
    """A kind with the floors of its series and the cases that last."""

    def __init__(self, name: str, kind: Leak, cases: list[Growing]) -> None:
        self._name = name
        self._kind = kind
        self._all = cases
        """Cases of all kinds."""
        self._floors: dict[Hashable, Floor] = {}
        self._there: tuple[Hashable, ...] = ()
        """The series of the latest sample, in their order."""

    @property
    def _cases(self) -> list[Growing]:
        return [case for case in self._all if case.kind == self._name]

    def tells(self, key: Hashable) -> bool:
        return any(key in case.runs for case in self._cases)

    def take(self, sample: Sample, now: Point, before: Point | None) -> None:
        values = dict(self._kind.series(sample))
        self._there = tuple(values)
        for key in [key for key in self._floors if key not in values]:
            # Gone for now: what comes and goes is known by its floor of zero.
            self._floors[key].take(now)
            if len(self._floors) > MOST_FLOORS:
                del self._floors[key]
        for key, value in values.items():
            floor = self._floors.get(key)
            if floor is None:
                floor = self._floors[key] = Floor()
                if before is not None and value is not None:
                    floor.take(before)
            if value is not None:
                floor.take(Point(now.sample, now.time, value, now.calls))

    def take_higher(self, sample: Sample, now: Point) -> None:
        """Takes in the series of a sample that are higher than before."""
        for key, value in self._kind.series(sample):
            floor = self._floors.get(key)
            if floor is not None and value is not None and floor.points and value > floor.points[-1].value:
                floor.take(Point(now.sample, now.time, value, now.calls))

    def findings(self, sample: Sample, now: Point, *, at_end: bool = False) -> Iterable[tuple[Finding, bool]]:
        for case in self._cases:
            why = self._over(case, now)
            case.fell = (case.fell or now) if why == "fell" else None
            if why == "fell" and not _goes_on(case, now):
                continue
            if why is not None:
                self._all.remove(case)
                if case.finding is not None:
                    yield _ended(case.finding, why, sample.time), True
        standing = {key for case in self._cases for key in case.runs}
        for case in self._cases:
            for key, run in case.runs.items() if case.fell is None else ():
                case.runs[key] = self._floors[key].extended(run, now)
        for key in self._there:
            if key not in standing:
                least = LEAST_RISES_AT_END if at_end else LEAST_RISES
                found = self._floors[key].run(now, least=least) or self._early(key, sample, now)
                if found is not None:
                    self._put(key, found, sample)
                elif at_end and (found := self._floors[key].run(now, least=LIKELY_RISES, calls=EARLY_CALLS)):
                    self._put(key, found, sample, is_likely=True)
                if len(self._floors[key].points) > LEAST_RISES:
                    time.sleep(0)  # a tenth of a millisecond was spent: others may have the interpreter
        for case in self._cases:
            if case.fell is not None:
                continue
            due = case.grown >= 2 * case.told
            case.told = case.grown if due else case.told
            case.finding = self._finding(case, sample)
            yield case.finding, due

    def _early(self, key: Hashable, sample: Sample, now: Point) -> Run | None:
        """Returns a run that is too short to be reported, unless it continued until the memory is full."""
        run = self._floors[key].run(now, least=LEAST_RISES_AT_END, calls=EARLY_CALLS)
        if run is None or run.function is None or self._kind.full_in(run, key, sample) >= SOON:
            return None
        return run

    def _put(self, key: Hashable, run: Run, sample: Sample, is_likely: bool = False) -> None:
        for case in self._cases:
            if self._kind.belongs(key, run, case, sample):
                case.runs[key] = run
                return
        if self._kind.matters(key, run, sample, self._all) and len(self._cases) < MOST_CASES:
            case = Growing(self._name, self._kind.subject(key), {key: run}, is_likely)
            if not is_likely or (run.function and (self._finding(case, sample).bytes or 0) >= LIKELY_BYTES):
                self._all.append(case)

    def _over(self, case: Growing, now: Point) -> str | None:
        """Why a case is over; series that are, while others go on, leave it."""
        for key, run in list(case.runs.items()):
            floor = self._floors.get(key)
            over = "fell" if floor is None else floor.is_over(run, now)
            if over is not None and len(case.runs) == 1:
                return over
            if over is not None:
                del case.runs[key]
        return None

    def _finding(self, case: Growing, sample: Sample) -> Finding:
        run = case.run
        told = dataclasses.replace(
            self._kind.tell(case, sample), function=run.function or UNKNOWN, subject=case.subject, count=run.rises
        )
        finding = told.finding(self._name, told.identity(self._name), sample.time, run.since.time)
        return likely(finding, _UNLESS) if case.is_likely else finding


def _goes_on(case: Growing, now: Point) -> bool:
    """Returns whether the program continued after a case fell: its function was called, or time has passed."""
    fell, function = case.fell or now, case.run.function
    called = function is not None and now.calls.get(function, 0) > fell.calls.get(function, 0)
    return called or now.sample - fell.sample >= LEAST_RISES


def _ended(finding: Finding, why: str, now: float) -> Finding:
    what = {"fell": "most of it was freed", "stopped": "it stopped growing"}[why]
    return dataclasses.replace(
        finding,
        time=now,
        ended=now,
        summary=f"{finding.summary} Over since {clock(now)}: {what}, so it was not a leak.",
        advice="No action is needed: it ended by itself.",
    )


def clock(seconds: float) -> str:
    """Time of day in UTC: `09:15:00Z`."""
    return timestamp(seconds)[11:19] + "Z"


def pace(run: Run, grown: float, write: Callable[[float], str]) -> str:
    """Returns how fast: `3 a call of `train_step``; so much a minute if no calls are known."""
    if run.function is not None and run.calls:
        return f"{write(grown / run.calls)} per call of `{run.function}`"
    return f"{write(grown * 60 / run.seconds if run.seconds else grown)} per minute"
