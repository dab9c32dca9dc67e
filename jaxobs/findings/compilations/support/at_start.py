"""Patterns of functions that recompile at their start, for arguments that differ in one respect."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from jaxobs.facts.compilations import Change, Compilation
from jaxobs.findings.compilations.support.case import Case, Telling, at_sites, duration, plural

AT_START = 3
"""First programs that count: the state may become committed at the second call, and sharded at the third; and a scalar
may hide behind another one that changes a call earlier."""

MOST_SHOWN = 8


class AtStart:
    """Looks at the second and third program of each transformation."""

    def __init__(
        self, name: str, what: str, changed: Callable[[Compilation, bool], Sequence[Change]],
        advice: Callable[[Sequence[Change]], str], why: str = "",
    ) -> None:  # fmt: skip
        """`changed` is given whether a program was compiled at the same call site, and returns the changes if any."""
        self._name, self._what, self._changed, self._advice, self._why = name, what, changed, advice, why
        self._programs: Counter[str | None] = Counter()
        self._sites: set[str | None] = {None}
        self._case: Case | None = None
        self._leaves: Sequence[Change] = ()
        self._number = 0

    def see(self, event: Compilation) -> Iterator[Case]:
        """The one case that a function may have."""
        self._programs[event.transform] += 1
        if event.eager or self._programs[event.transform] > AT_START:
            return
        leaves = self._changed(event, event.call_site in self._sites)
        self._sites.add(event.call_site)
        if not leaves:
            return
        other = leaves[0] if len(leaves) < len(event.changes) else None
        self._case = (self._case or Case.of(self._name, event)).add(event, other)
        if not self._leaves:
            self._leaves, self._number = leaves[:MOST_SHOWN], len(leaves)
        yield self._case

    def tell(self, case: Case) -> Telling:
        """Which leaves, and how they are before and after."""
        first = self._leaves[0]
        more = f" and {plural(self._number - 1, f'more {self._what}')} likewise" if self._number > 1 else ""
        leaves = [{"path": each.path, "before": each.before, "after": each.after} for each in self._leaves]
        return Telling(
            summary=f"`{case.function}` recompiled{at_sites(case)}, which took {duration(case.seconds)}"
            f"{self._why}: `{first.path}` was {first.before}, then {first.after}{more}.",
            advice=self._advice(self._leaves) + case.unless_yours,
            data={"leaves": leaves, f"{self._what}s": self._number},
        )
