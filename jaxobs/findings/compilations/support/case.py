"""A case: the compilations of one function that show one pattern, and what is reported about them.

A pattern's watcher sees the compilations of one function in order, puts them into cases and says which cases are worth
telling. Whatever is kept of a compilation is small: no event outlives the call.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from jaxobs.facts.compilations import EAGER, Change, Compilation
from jaxobs.facts.events import timestamp
from jaxobs.facts.findings import Finding

MOST_EVIDENCE = 5
MOST_SEQUENCES = 16
MOST_SITES = 8
MOST_TEXT = 200


@dataclass(frozen=True, slots=True)
class Telling:
    """Words of a pattern on a case as it is."""

    summary: str
    advice: str
    severity: str = "warning"
    """A severity of `facts.verdicts.SEVERITIES`."""
    saves: float | None = None
    """Part of the case's time that the advice saves, from 0 to 1; None where it is all, or not known."""
    data: Mapping[str, Any] = field(default_factory=dict)


class Watcher(Protocol):
    """A pattern that watches the compilations of one function."""

    def see(self, event: Compilation) -> Iterable[Case]:
        """The cases that the compilation belongs to, of those that are worth telling."""

    def tell(self, case: Case) -> Telling:
        """Returns the words on one of the watcher's cases."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """A compilation as evidence shows it."""

    time: float
    where: str | None
    change: Change | None
    more: int
    cause: str
    operation: str
    seconds: float

    def __str__(self) -> str:
        parts = [timestamp(self.time)[:19] + "Z", self.where or "call site unknown"]
        if self.operation:
            parts.append(f"`{self.operation}`")
        if self.change is not None:
            path = f"`{self.change.path}` " if self.change.path else ""
            more = f" and {self.more} more" if self.more else ""
            parts.append(f"{path}{shortened(self.change.before)} -> {shortened(self.change.after)}{more}")
        else:
            parts.append(self.cause)
        return f"{' '.join(parts)}, {duration(self.seconds)}"


@dataclass(slots=True)
class Case:
    """Compilations that belong together, counted; the latest of them are remembered as evidence."""

    finding: str
    """The pattern's name."""
    function: str
    subject: str = ""
    line: str = ""
    """The call site, where the function's name stands for many: all lambdas of a module have one name."""
    count: int = 0
    seconds: float = 0.0
    since: float = 0.0
    until: float = 0.0
    causes: Counter[str] = field(default_factory=Counter)
    sites: Counter[str] = field(default_factory=Counter)
    libraries: dict[str, set[str | None]] = field(default_factory=dict)
    """Innermost lines of libraries between each site and JAX; None for a call without one."""
    told: int = 0
    """The count when it was last told."""
    patience: float = 0.0
    """Seconds after the latest compilation during which another one may refute the case; it is not reported sooner."""
    refuted: str = ""
    """A sentence, if later compilations have shown that it is no such case."""
    caller: str | None = None
    """The library that calls this function of its own, where it is so."""
    about: Any = None
    """Memory of the pattern itself about the case, which lives as long as the case."""
    _latest: list[_Shown] = field(default_factory=list)
    _sequences: list[int] = field(default_factory=list)

    @property
    def by_cleared_caches(self) -> bool:
        """Whether clearing JAX's caches brought most of it, as it does to all that is called in that loop."""
        return self.causes.most_common(1)[0][0] == "cache_cleared"

    @classmethod
    def of(cls, finding: str, event: Compilation, subject: str = "") -> Case:
        """An empty case about the function of the compilation."""
        function = EAGER if event.eager else event.function
        return cls(finding, function, subject, line_of(event), caller=_library_of_both(event))

    def add(self, event: Compilation, change: Change | None = None) -> Case:
        """Counts a compilation in; `change` is the difference that shows the pattern best."""
        seconds = total_seconds(event)
        self.since = event.time if not self.count else min(self.since, event.time)
        self.until = max(self.until, event.time)
        self.count += 1
        self.seconds += seconds
        self.causes[event.cause] += 1
        site = event.call_site
        if site is not None and (site in self.sites or len(self.sites) < MOST_SITES):
            self.sites[site] += 1
            inside = self.libraries.setdefault(site, set())
            if len(inside) < MOST_SITES:
                inside.add(event.library_site)
        shown = change or (event.changes[0] if event.changes else None)
        more = len(event.changes) - 1 if shown is not None and change is None else 0
        operation = event.function if event.eager else ""
        self._latest.append(_Shown(event.time, event.where, shown, more, event.cause, operation, seconds))
        del self._latest[:-MOST_EVIDENCE]
        if event.sequence:
            self._sequences.append(event.sequence)
            del self._sequences[:-MOST_SEQUENCES]
        return self

    def sum_up(self, parts: Sequence[Case]) -> Case:
        """Makes this the case of all compilations of some others."""
        self.count, self.seconds = sum(each.count for each in parts), sum(each.seconds for each in parts)
        self.since, self.until = min(each.since for each in parts), max(each.until for each in parts)
        self.causes, sites = Counter(), Counter[str]()
        for part in parts:
            self.causes.update(part.causes)
            sites.update(part.sites)
        self.sites = Counter(dict(sites.most_common(MOST_SITES)))
        self.libraries = {site: inside for each in parts for site, inside in each.libraries.items()}
        latest = sorted((one for each in parts for one in each._latest), key=lambda one: one.time)
        self._latest = latest[-MOST_EVIDENCE:]
        self._sequences = sorted(number for each in parts for number in each._sequences)[-MOST_SEQUENCES:]
        return self

    @property
    def id(self) -> str:
        """Identity of the finding: equal for the same type, function and subject, in every process."""
        what = "\0".join((self.finding, self.function, self.subject, self.line))
        return f"{self.finding}-{hashlib.sha256(what.encode()).hexdigest()[:12]}"

    def library(self, site: str) -> str | None:
        """`flax/core/scope.py:983` where all of a site came from one line of a library."""
        inside = self.libraries.get(site, set())
        return next(iter(inside)) if len(inside) == 1 else None

    def within(self, site: str) -> str:
        """Returns the library's line for a sentence: ` (in flax/core/scope.py:983)`; empty if there is none."""
        library = self.library(site)
        return f" (in {library})" if library else ""

    @property
    def unless_yours(self) -> str:
        """Addition to advice on arguments if a library makes the call; empty elsewhere."""
        if self.caller is None:
            return ""
        return (
            f" {self.caller} calls this function itself: only {self.caller} can change arguments that you do not pass "
            "in, but a persistent cache avoids the compilation at the next start."
        )

    @property
    def where(self) -> str | None:
        """Most frequent call site of the case, as `Compilation.where` gives it."""
        if not self.sites:
            return None
        site = self.sites.most_common(1)[0][0]
        library = self.library(site)
        return f"{site}, in {library}" if library else site

    @property
    def due(self) -> bool:
        """Whether the case is new, or has doubled since it was reported."""
        return self.count >= 2 * self.told

    def finding_of(self, telling: Telling) -> Finding:
        """The fact, as the case is now."""
        return Finding(
            time=self.until, id=self.id, finding=self.finding, function=self.function,
            subject=self.subject or self.line, summary=telling.summary, advice=telling.advice,
            severity=telling.severity, where=self.where, count=self.count, seconds=self.seconds, since=self.since,
            saves_seconds=None if telling.saves is None else telling.saves * self.seconds,
            evidence=tuple(str(each) for each in reversed(self._latest)), sequences=tuple(self._sequences),
            data=telling.data,
        )  # fmt: skip


def line_of(event: Compilation) -> str:
    """The call site if only a call site distinguishes functions of one name; else empty."""
    return event.call_site or "" if "<lambda>" in event.function and not event.eager else ""


def _library_of_both(event: Compilation) -> str | None:
    """The library of a function that is called from that library's code, and not by the user."""
    if event.library_site is None or event.eager:
        return None
    library = event.library_site.replace("\\", "/").partition("/")[0]
    return library if event.function.partition(".")[0] == library else None


def total_seconds(event: Compilation) -> float:
    """Seconds of all phases."""
    return sum(event.phases.values())


def at_sites(case: Case) -> str:
    """` at train.py:33`, ` at train.py:33 and 2 other places`; empty if none is known.

    With the innermost line of a library, ` at train.py:33 (in flax/core/scope.py:983)`, where all came from one.
    """
    if not case.sites:
        return ""
    (first, _), *others = case.sites.most_common()
    more = f" and {plural(len(others), 'other call site')}" if others else ""
    return f" at {first}{case.within(first)}{more}"


def times(count: int) -> str:
    """Returns how often, in words: `once`, `3 times`."""
    return "once" if count == 1 else f"{count:,} times"


def plural(count: int, what: str) -> str:
    """`1 program`, `12 programs`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def duration(seconds: float) -> str:
    """`12.3 ms`, `1.23 s`, `1m15s`, `3h12m`."""
    if not math.isfinite(seconds):
        return "an unknown time"
    if seconds < 0.9995:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 99.95:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02d}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02d}m"


def shortened(text: str, most: int = MOST_TEXT) -> str:
    """`text` on one line, cut to so many characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"
