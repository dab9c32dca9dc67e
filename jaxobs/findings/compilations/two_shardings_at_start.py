"""`two_shardings_at_start`: compiled twice at the start, for the arrays are placed otherwise from the second call."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

from jaxobs.facts.compilations import Change, Compilation
from jaxobs.findings.compilations.support.case import Case, Telling, at_sites, duration, plural

NAME = "two_shardings_at_start"

AT_START = 3
"""First programs that count: the state may become committed at the second call, and sharded at the third."""

COSTLY = 1.0
"""Seconds from which it is reported wherever the function was called from. Cheaper ones are reported only if both calls
come from one place: a function of two callers may well have two placements."""

MOST_CHANGES = 2048
MOST_SHOWN = 8

_PLACED = frozenset({"sharding", "placement", "layout"})


class TwoShardingsAtStart:
    """Looks at the second and third program of each transformation."""

    def __init__(self) -> None:
        self._programs: Counter[str | None] = Counter()
        self._sites: set[str | None] = set()
        self._case: Case | None = None
        self._leaves: tuple[Change, ...] = ()
        self._number = 0

    def see(self, event: Compilation) -> Iterator[Case]:
        """The one case that a function may have."""
        self._programs[event.transform] += 1
        if event.eager or self._programs[event.transform] > AT_START:
            return
        here = event.call_site is None or event.call_site in self._sites
        self._sites.add(event.call_site)
        if not _only_placed(event) or not (here or sum(event.phases.values()) >= COSTLY):
            return
        self._case = (self._case or Case.of(NAME, event)).add(event)
        if not self._leaves:
            self._leaves, self._number = event.changes[:MOST_SHOWN], len(event.changes)
        yield self._case

    def tell(self, case: Case) -> Telling:
        """Which leaves, and how they are placed before and after."""
        first = self._leaves[0]
        more = f" and {plural(self._number - 1, 'more array')} likewise" if self._number > 1 else ""
        return Telling(
            summary=(
                f"`{case.function}` recompiled at its start{at_sites(case)}, which took "
                f"{duration(case.seconds)}, for the same arrays placed differently: `{first.path}` was {first.before}, "
                f"then {first.after}{more}."
            ),
            advice=self._advice() + case.unless_yours,
            data={
                "leaves": [{"path": each.path, "before": each.before, "after": each.after} for each in self._leaves],
                "arrays": self._number,
            },
        )

    def _advice(self) -> str:
        first = self._leaves[0]
        these = f"`{first.path}`{' and the others' if self._number > 1 else ''}"
        if first.before == "uncommitted" and first.after.startswith("committed to "):
            return (
                f"In the first call, {these} had not been committed to a device. jax.device_put with a device commits "
                f"arrays, and so does restoring a checkpoint: commit {these} before the first call, too."
            )
        several = len({each.after for each in self._leaves}) > 1
        own = f" for `{first.path}` and its own for each of the others" if several else ""
        return (
            f"Before the first call, place {these} where the function leaves them: jax.device_put(x, sharding), with "
            f"{first.after}{own}; or fix the function's in_shardings and out_shardings."
        )


def _only_placed(event: Compilation) -> bool:
    changes = itertools.islice(event.changes, MOST_CHANGES)
    return event.cause in _PLACED and all(each.what in _PLACED for each in changes)


watch = TwoShardingsAtStart
