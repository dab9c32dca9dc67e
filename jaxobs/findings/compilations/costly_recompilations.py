"""`costly_recompilations`: few recompilations of one function, which took long."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from jaxobs.facts.compilations import Change, Compilation
from jaxobs.findings.compilations.support import sizes
from jaxobs.findings.compilations.support.case import Case, Telling, at_sites, duration, times, total_seconds

NAME = "costly_recompilations"

GENERAL = 3
"""Rank among general patterns: this one names the cost and the costliest reason, and gives way to one that explains
more."""

SECONDS = 1.0
"""Time that the recompilations took together. A large program alone takes minutes."""

AVOIDABLE = frozenset({"dtype", "weak_type", "jit_options", "context"})
"""Causes that are hardly ever meant. Another mode, place, model or bucket may well be. At a line that compiled the
function before, without a change in sight, `unknown` is no more meant than these."""

SHARE = 0.02
"""Share that a smaller batch's recompilation has of the time since the function first compiled. Each epoch has the same
last batch, so it costs less and less of a longer run."""

SEVERAL = 3
"""Sizes of the leading dimension that are not a batch and its rest: a server warms up its buckets, or sizes vary."""

MOST_CHANGES = 16


@dataclass(slots=True)
class _Costs:
    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds by cause."""
    costliest: float = 0.0
    reason: str = ""
    """Reason of the costliest compilation."""


@dataclass(slots=True)
class _Rest:
    """A last batch: the leading dimension had one smaller size."""

    paths: tuple[str, ...]
    before: int
    after: int


class CostlyRecompilations:
    """Adds up what recompilations cost that need not have been."""

    def __init__(self) -> None:
        self._avoidable: Case | None = None
        self._rest: Case | None = None
        self._began: float | None = None
        self._sizes: dict[str, set[int]] = {}
        """Sizes of the leading dimension by argument."""

    def see(self, event: Compilation) -> Iterator[Case]:
        """The case of causes that are hardly ever meant, or that of a last batch."""
        seconds = total_seconds(event)
        if self._began is None:
            self._began = event.time - seconds
        if event.eager or event.cache == "hit":
            return
        if event.cause in AVOIDABLE or (event.cause == "unknown" and event.call_site is not None):
            if self._avoidable is None:
                self._avoidable = Case.of(NAME, event)
                self._avoidable.about = _Costs()
            case = self._avoidable.add(event)
            costs: _Costs = case.about
            costs.seconds[event.cause] = costs.seconds.get(event.cause, 0.0) + seconds
            if seconds > costs.costliest:
                costs.costliest, costs.reason = seconds, event.reason
            if case.seconds >= SECONDS:
                yield case
        elif event.cause == "shape":
            yield from self._see_shape(event, event.time - self._began)

    def _see_shape(self, event: Compilation, elapsed: float) -> Iterator[Case]:
        varied = sizes.dimensions(event.changes[:MOST_CHANGES])
        if not varied or any(each.number for each in varied):
            return
        first = varied[0]
        if len(self._sizes) < MOST_CHANGES:
            self._sizes.setdefault(first.path, set()).update((first.before, first.after))
        if any(len(seen) >= SEVERAL for seen in self._sizes.values()):
            if self._rest is not None:
                self._rest.refuted = "The leading dimension has taken more sizes since: it is not a last batch."
                yield self._rest
        elif all(each.after < each.before for each in varied):
            if self._rest is None:
                self._rest = Case.of(NAME, event, "last batch")
                self._rest.about = _Rest(_paths(event.changes), first.before, first.after)
            case = self._rest.add(event)
            # Buckets that are warmed up follow each other at once, and take about as long.
            case.patience = 2 * total_seconds(event)
            if case.seconds >= max(SECONDS, SHARE * elapsed):
                yield case

    def tell(self, case: Case) -> Telling:
        """Tells the cost by cause and the costliest compilation's reason; or the sizes of a last batch."""
        if isinstance(case.about, _Rest):
            return _last_batch(case, case.about)
        costs: _Costs = case.about
        ordered = sorted(costs.seconds.items(), key=lambda each: -each[1])
        causes = ", ".join(f"{cause} {duration(seconds)}" for cause, seconds in ordered)
        which = "The most expensive one: " if case.count > 1 else ""
        return Telling(
            summary=(
                f"`{case.function}` recompiled {times(case.count)}{at_sites(case)}, which took "
                f"{duration(case.seconds)}{f': {causes}' if len(costs.seconds) > 1 else f' ({causes.split()[0]})'}."
            ),
            advice=f"{which}{costs.reason}",
            data={"seconds_by_cause": {cause: round(seconds, 6) for cause, seconds in costs.seconds.items()}},
        )


def _last_batch(case: Case, rest: _Rest) -> Telling:
    named = ", ".join(f"`{path}`" for path in rest.paths[:3]) or "the batch"
    return Telling(
        summary=(
            f"`{case.function}` recompiled {times(case.count)}{at_sites(case)} for {rest.after:,} rows instead of "
            f"{rest.before:,} in {named}, which took {duration(case.seconds)}."
        ),
        advice=(
            f"If this is the last batch, drop it (`drop_remainder=True`; in a loop over rows, take the first "
            f"`rows // {rest.before} * {rest.before}`). If every row counts, pad {named} to {rest.before:,} rows and "
            f"mask the padding.{case.unless_yours}"
        ),
        data={
            "arguments": list(rest.paths),
            "rows": rest.before,
            "rest": rest.after,
            "seconds_by_cause": {"shape": round(case.seconds, 6)},
        },
    )


def _paths(changes: Sequence[Change]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.path for each in changes[:MOST_CHANGES] if each.path))


watch = CostlyRecompilations
