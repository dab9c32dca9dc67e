"""`weak_type_at_start`: compiled at the first call and again at the second, where only a weak type differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from jaxobs.facts.compilations import Change, Compilation
from jaxobs.findings.compilations.support.case import Case, Telling, at_sites, duration, plural
from jaxobs.reasons.cures import cure

NAME = "weak_type_at_start"

AT_START = 3
"""First programs that count: a scalar may hide behind another one that changes a call earlier."""

MOST_SHOWN = 8


class WeakTypeAtStart:
    """Looks at the second and third program of each transformation."""

    def __init__(self) -> None:
        self._programs: Counter[str | None] = Counter()
        self._case: Case | None = None
        self._leaves: tuple[Change, ...] = ()
        self._number = 0

    def see(self, event: Compilation) -> Iterator[Case]:
        """The one case that a function may have."""
        self._programs[event.transform] += 1
        if event.eager or event.cause != "weak_type" or self._programs[event.transform] > AT_START:
            return
        weak = [each for each in event.changes if each.what == "weak_type"]
        self._case = (self._case or Case.of(NAME, event)).add(event, weak[0] if weak else None)
        if not self._leaves:
            self._leaves, self._number = tuple(weak[:MOST_SHOWN]), len(weak)
        yield self._case

    def tell(self, case: Case) -> Telling:
        """Which scalars, and the type that they take."""
        first = self._leaves[0] if self._leaves else Change("", "weak_type", "", "")
        more = f" and {plural(self._number - 1, 'more argument')} likewise" if self._number > 1 else ""
        return Telling(
            summary=(
                f"`{case.function}` recompiled at its start{at_sites(case)}, which took "
                f"{duration(case.seconds)}: `{first.path}` was {first.before}, then {first.after}{more}."
            ),
            advice=cure("weak_type", self._leaves) + case.unless_yours,
            data={
                "leaves": [{"path": each.path, "before": each.before, "after": each.after} for each in self._leaves],
                "arguments": self._number,
            },
        )


watch = WeakTypeAtStart
