"""Patterns over time: compilations in, findings out.

A pattern's kind has `watch()`, which makes a watcher for one function (see `compilations.support.case.Watcher`). One
whose programs may be a bounded set has `CLOSES`: it is over when that is closed (see `compilations.support.reuse`). One
that says that something is wrong, and not what, has `GENERAL`, the higher the less it says: it gives way to the others.
A pattern knows facts only, so that what was seen live can be found again in an event log.
"""

import dataclasses
import functools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from jaxobs.facts.compilations import EAGER, Compilation
from jaxobs.facts.findings import Finding
from jaxobs.findings import all_kinds
from jaxobs.findings.compilations.support.case import Case, Watcher, line_of
from jaxobs.findings.compilations.support.programs import GRID_CALLS, Made, Reuse

MOST_FUNCTIONS = 48
"""Functions that compiled twice and are watched; the one that compiled longest ago is forgotten first."""

MOST_ONCE = 1024
"""Functions that compiled once, which may be all that they do."""

MOST_FINDINGS = 100

EXPLAINED = 0.5
"""Share of a general pattern's compilations that a specific one explains, from which on it stands for both."""


@dataclass(slots=True)
class _Standing:
    watcher: Watcher
    case: Case
    shown: int = 0
    """The count when it was last handed out."""
    gave_way: bool = False
    """Whether the case was reported, and then a specific pattern explained it."""
    reuse: Reuse = field(default_factory=Reuse)
    closed: float | None = None
    """Time at which the case's set was closed."""

    def finding(self) -> Finding:
        self.shown = self.case.count
        finding = self.case.finding_of(self.watcher.tell(self.case))
        return finding if self.closed is None else _closed(finding, self.closed, self.reuse)

    def close(self, now: float) -> Finding:
        self.closed = now
        return self.finding()


class Patterns:
    """All patterns over the compilations of one process. Not thread-safe: its owner locks."""

    def __init__(self, watch: Iterable[Callable[[], Watcher]] | None = None, made: Made = lambda _: None) -> None:
        """`made`: calls of a function so far, if they are seen."""
        self._made = made
        # The specific ones first: a general one is not reported where they explain it by the same compilation.
        ordered = sorted(all_kinds.watching(), key=lambda each: getattr(each, "GENERAL", 0))
        self._watch = tuple(watch) if watch is not None else tuple(each.watch for each in ordered)
        self._once: OrderedDict[str, Compilation] = OrderedDict()
        """The only compilation so far of functions that compiled once."""
        self._functions: OrderedDict[str, tuple[Watcher, ...]] = OrderedDict()
        self._standing: OrderedDict[str, _Standing] = OrderedDict()

    def see(self, event: Compilation) -> list[Finding]:
        """Takes in a compilation; the findings that are new by it, or have doubled since they were reported."""
        if event.by_rerun:
            return []
        due: list[Finding] = []
        for each, watcher in self._to_be_shown(event):
            for case in watcher.see(each):
                standing = self._stand(watcher, case)
                if case.refuted or self._explained_by(case) is not None:
                    due.extend(self._given_way(standing))
                elif self._is_due(standing):
                    case.told = case.count
                    due.append(standing.finding())
        # A specific pattern may have come after the general one, by this very compilation.
        for known in self._standing.values() if due else ():
            due.extend(self._given_way(known))
        return due

    def _given_way(self, standing: _Standing) -> Iterator[Finding]:
        """Yields a finding that was reported before its explanation was known, once."""
        if not standing.case.told or standing.gave_way:
            return
        specific = self._explained_by(standing.case)
        why, advice = standing.case.refuted, "No action is needed."
        if specific is not None:
            what = f"`{specific.finding}`: {specific.subject}" if specific.subject else f"`{specific.finding}`"
            why, advice = f"This is explained by {what}.", f"See `{specific.finding}`."
        if why:
            standing.gave_way = True
            finding = standing.finding()
            yield dataclasses.replace(finding, ended=finding.time, summary=f"{finding.summary} {why}", advice=advice)

    def _is_due(self, standing: _Standing) -> bool:
        """Returns whether a case is news: never while its set is closed, at once if the set was open after all."""
        case, reuse = standing.case, standing.reuse
        if reuse.opened(case.count):
            standing.closed, case.told = None, 0
        if not case.told and case.finding in _closing() and self._is_grid(standing):
            reuse.closed_at, standing.closed = case.count, case.until
            return True
        return standing.closed is None and case.due and not case.patience

    def _is_grid(self, standing: _Standing) -> bool:
        grid = getattr(standing.watcher, "is_grid", None)
        calls = self._made(standing.case.function) if grid is not None and grid(standing.case) else None
        return calls is not None and calls >= GRID_CALLS * (standing.case.count + 1)

    def stood(self, now: float) -> list[Finding]:
        """The findings that a further compilation might have refuted, and that none has until now."""
        due = [each for each in self._own() if each.case.patience and now >= each.case.until + each.case.patience]
        news = [each for each in due if each.case.due]
        for standing in news:
            standing.case.told = standing.case.count
        return [standing.finding() for standing in news]

    def settled(self, now: float) -> list[Finding]:
        """The findings that are over now: their functions are called again and again, and nothing new compiles."""
        open_ones = [each for each in self._own() if each.case.finding in _closing() and each.case.told]
        return [
            each.close(now)
            for each in open_ones
            if each.closed is None and each.reuse.look(each.case.count, self._made(each.case.function))
        ]

    def grown(self) -> list[Finding]:
        """The findings that have grown since they were last handed out, by here or by `see`."""
        return [each.finding() for each in self._own() if each.shown != each.case.count]

    def standing(self) -> list[Finding]:
        """All findings as they are now, the latest first; of very many the latest."""
        return [each.finding() for each in reversed(list(self._own()))]

    def _own(self) -> Iterator[_Standing]:
        """Yields the cases that nothing explains or refutes."""
        standing = self._standing.values()
        return (each for each in standing if not each.case.refuted and self._explained_by(each.case) is None)

    def _explained_by(self, case: Case) -> Case | None:
        """The case that stands for this one too: a specific one, or the first of those that cleared caches brought."""
        general = _general()
        if case.by_cleared_caches:
            alike = [each.case for each in self._standing.values() if each.case.by_cleared_caches]
            first = min(alike, key=lambda it: (it.function == EAGER, it.finding in general, it.since), default=case)
            if first is not case:
                return first
        rank = general.get(case.finding, 0)
        if not rank:
            return None
        others = [each.case for each in self._standing.values() if general.get(each.case.finding, 0) < rank]
        same = [each for each in others if (each.function, each.line) == (case.function, case.line)]
        return next((each for each in same if each.count >= EXPLAINED * case.count), None)

    def _to_be_shown(self, event: Compilation) -> list[tuple[Compilation, Watcher]]:
        """Which watchers see which event: nobody watches a function until it compiles a second time."""
        key = EAGER if event.eager else f"{event.function} {line_of(event)}"
        first = self._once.pop(key, None)
        if first is None and key not in self._functions:
            self._once[key] = event
            if len(self._once) > MOST_ONCE:
                self._once.popitem(last=False)
            return []
        watchers = self._watchers(key)
        return [(each, watcher) for each in (first, event) if each is not None for watcher in watchers]

    def _watchers(self, key: str) -> tuple[Watcher, ...]:
        watchers = self._functions.get(key)
        if watchers is None:
            watchers = self._functions[key] = tuple(watch() for watch in self._watch)
            if len(self._functions) > MOST_FUNCTIONS:
                self._functions.popitem(last=False)
        self._functions.move_to_end(key)
        return watchers

    def _stand(self, watcher: Watcher, case: Case) -> _Standing:
        standing = self._standing.get(case.id)
        if standing is None or standing.case is not case:
            standing = self._standing[case.id] = _Standing(watcher, case)
            if len(self._standing) > MOST_FINDINGS:
                self._standing.popitem(last=False)
        self._standing.move_to_end(case.id)
        return standing


@functools.cache
def _general() -> dict[str, int]:
    return {each.NAME: each.GENERAL for each in all_kinds.watching() if hasattr(each, "GENERAL")}


@functools.cache
def _closing() -> frozenset[str]:
    return frozenset(each.NAME for each in all_kinds.watching() if getattr(each, "CLOSES", False))


def _closed(finding: Finding, now: float, reuse: Reuse) -> Finding:
    """A finding about a set of programs that is bounded."""
    since = f"In the {reuse.without:,} calls since, nothing new has compiled: these are all."
    grid = "They are multiples of one step, and used again and again."
    return dataclasses.replace(
        finding,
        time=now,
        ended=now,
        summary=f"{finding.summary} {since if reuse.without else grid}",
        advice="No action is needed: the programs are reused. Compile them before the first request or step "
        "(`jaxobs.warmup`) if their compilation is in the way.",
    )
