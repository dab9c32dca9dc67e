"""Patterns over time: compilations in, findings out. One file for each pattern, found by the folder.

A pattern's module has `NAME`, the finding's type; `ABOUT` and `TOLD_WHEN`, for the reference; its thresholds, each
with a sentence why; and `watch()`, which makes a watcher for one function (see `jaxobs.patterns.case.Watcher`). It
knows facts only, so that what was seen live can be told again from an event log. Modules without `watch` are what
patterns share.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType

from jaxobs import discovery
from jaxobs.facts import EAGER, Compilation, Finding
from jaxobs.patterns.case import Case, Watcher, line_of

MOST_FUNCTIONS = 48
"""Functions that compiled twice and are watched; the one that compiled longest ago is forgotten first."""

MOST_ONCE = 1024
"""Functions that compiled once, which may be all that they do."""

MOST_FINDINGS = 100


@functools.cache
def known() -> tuple[ModuleType, ...]:
    """The modules of all patterns."""
    return tuple(each for each in discovery.modules(__name__) if hasattr(each, "watch"))


@dataclass(slots=True)
class _Standing:
    watcher: Watcher
    case: Case
    shown: int = 0
    """The count when it was last handed out."""

    def finding(self) -> Finding:
        self.shown = self.case.count
        return self.case.finding_of(self.watcher.tell(self.case))


class Patterns:
    """All patterns over the compilations of one process. Not thread-safe: its owner locks."""

    def __init__(self, watch: Iterable[Callable[[], Watcher]] | None = None) -> None:
        self._watch = tuple(watch) if watch is not None else tuple(each.watch for each in known())
        self._once: OrderedDict[str, Compilation] = OrderedDict()
        """The only compilation so far of functions that compiled once."""
        self._functions: OrderedDict[str, tuple[Watcher, ...]] = OrderedDict()
        self._standing: OrderedDict[str, _Standing] = OrderedDict()

    def see(self, event: Compilation) -> list[Finding]:
        """Takes in a compilation; the findings that are new by it, or have doubled since they were told."""
        due = []
        for each, watcher in self._to_be_shown(event):
            for case in watcher.see(each):
                standing = self._stand(watcher, case)
                if case.due:
                    case.told = case.count
                    due.append(standing.finding())
        return due

    def grown(self) -> list[Finding]:
        """The findings that have grown since they were last handed out, by here or by `see`."""
        return [each.finding() for each in self._standing.values() if each.shown != each.case.count]

    def standing(self) -> list[Finding]:
        """All findings as they stand now, the latest first; of very many the latest."""
        return [each.finding() for each in reversed(self._standing.values())]

    def _to_be_shown(self, event: Compilation) -> list[tuple[Compilation, Watcher]]:
        """Which watchers see which event: nobody watches a function until it compiles a second time."""
        key = _key(event)
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


def _key(event: Compilation) -> str:
    """Whose compilations belong together."""
    return EAGER if event.eager else f"{event.function} {line_of(event)}"
