"""`costly_recompilations`: few recompilations of one function, which took long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from jaxobs.facts.compilations import Compilation
from jaxobs.findings.compilations.support import sizes
from jaxobs.findings.compilations.support.case import Case, Telling, at_sites, duration, times, total_seconds

NAME = "costly_recompilations"
ABOUT = "A few recompilations of a function took long."

GENERAL = 3
"""Rank among general patterns: this one names the cost and the costliest reason, and gives way to one that explains
more."""

SECONDS = 1.0
"""Time that the recompilations took together. A large program alone takes minutes."""

AVOIDABLE = frozenset({"dtype", "weak_type", "jit_options", "context"})
"""Causes that are hardly ever meant. Another mode, place, model or bucket may well be."""

TOLD_WHEN = (
    f"recompilations for a different dtype, weak type, option or context, or for a smaller last batch, took "
    f"{SECONDS:g} s together, and no other finding explains them"
)

MOST_CHANGES = 16


@dataclass(slots=True)
class _Costs:
    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds by cause."""
    costliest: float = 0.0
    reason: str = ""
    """Reason of the costliest compilation."""


class CostlyRecompilations:
    """Adds up what recompilations cost that need not have been."""

    def __init__(self) -> None:
        self._case: Case | None = None

    def see(self, event: Compilation) -> Iterator[Case]:
        """The one case of a function."""
        if event.eager or event.cache == "hit" or not _counts(event):
            return
        if self._case is None:
            self._case = Case.of(NAME, event)
            self._case.about = _Costs()
        case = self._case.add(event)
        costs: _Costs = case.about
        seconds = total_seconds(event)
        costs.seconds[event.cause] = costs.seconds.get(event.cause, 0.0) + seconds
        if seconds > costs.costliest:
            costs.costliest, costs.reason = seconds, event.reason
        if case.seconds >= SECONDS:
            yield case

    def tell(self, case: Case) -> Telling:
        """Tells the cost by cause, and the costliest compilation's reason."""
        costs: _Costs = case.about
        ordered = sorted(costs.seconds.items(), key=lambda each: -each[1])
        causes = ", ".join(f"{cause} {duration(seconds)}" for cause, seconds in ordered)
        avoidable = sum(seconds for cause, seconds in costs.seconds.items() if cause in AVOIDABLE)
        which = "The most expensive one: " if case.count > 1 else ""
        return Telling(
            summary=(
                f"`{case.function}` recompiled {times(case.count)}{at_sites(case)}, which took "
                f"{duration(case.seconds)}{f': {causes}' if len(costs.seconds) > 1 else f' ({causes.split()[0]})'}."
            ),
            advice=f"{which}{costs.reason}",
            severity="warning" if avoidable >= SECONDS else "info",
            data={"seconds_by_cause": {cause: round(seconds, 6) for cause, seconds in costs.seconds.items()}},
        )


def _counts(event: Compilation) -> bool:
    if event.cause != "shape":
        return event.cause in AVOIDABLE
    dimensions = sizes.dimensions(event.changes[:MOST_CHANGES])
    return any(_is_rest(each) for each in dimensions)


def _is_rest(varied: sizes.Varied) -> bool:
    """Returns whether a size is the rest for a last batch: fewer rows, and no number that anybody would choose."""
    rounded = varied.before % sizes.ALIGNED == 0 and varied.after % sizes.ALIGNED
    return varied.number == 0 and varied.after < varied.before and bool(rounded)


watch = CostlyRecompilations
