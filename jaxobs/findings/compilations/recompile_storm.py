"""`recompile_storm`: a function continues compiling when its warm-up is long over."""

from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

from jaxobs.facts.compilations import Change, Compilation
from jaxobs.findings.compilations.support import sizes
from jaxobs.findings.compilations.support.case import Case, Telling, at_sites, duration, times
from jaxobs.findings.compilations.support.static_arguments import looks_alike, unbounded, values

NAME = "recompile_storm"

WARM_UP = 4
"""Programs that a function may need at its start: for training and evaluation, for the last batch, for the arrays
as they are placed after the first step. Of each transformation, such as the backward pass, as many."""

MANY = 6
"""Recompilations after the warm-up that make a storm: none is expected, and a few may have a reason of their own."""

WINDOW = 600.0
"""Seconds in which they come: ten minutes hold so many compilations of a large program, of a minute each."""

GENERAL = 2
"""Rank among general patterns: a storm says that a function compiles, not why, and gives way to all others."""

MOST_BOUNDED = 4
MOST_SEEN = 2 * sizes.MOST_ALIGNED
MOST_CHANGES = 16

_PLACED = frozenset({"sharding", "placement", "layout"})
"""There are only as many places as devices."""

_DO = {
    "shape": "Pad or bucket the dimension that varies.",
    "dtype": "Convert the argument to the same type before the loop.",
    "weak_type": "Convert Python scalars to arrays of a fixed type before the loop.",
    "structure": "Keep the same structure of the arguments in every call: the same keys, containers and None fields.",
    "static_argument": "Pass what varies as an array instead of a static argument.",
    "sharding": "Place the arguments the same way in every call.",
    "placement": "Place the arguments the same way in every call.",
    "layout": "Keep the same layout of the arguments.",
    "jit_options": "Keep one jitted object instead of jitting again with different options.",
    "context": "Set the config value or context manager once, before the first call.",
    "new_function": "Create the function and its jit once, outside the loop.",
    "cache_cleared": "Do not clear JAX's caches while the loop runs.",
}


class RecompileStorm:
    """Counts what comes after the warm-up, in a window of time."""

    def __init__(self) -> None:
        self._programs: Counter[str | None] = Counter()
        self._recent: deque[float] = deque(maxlen=MANY)
        self._bounded: dict[tuple[str, int], set[Any]] = {}
        self._case: Case | None = None
        self._raging = False

    def see(self, event: Compilation) -> Iterator[Case]:
        """The storm, once there is one; the compilations that built it up belong to it."""
        if event.eager:
            return
        self._programs[event.transform] += 1
        expected = self._expected(event)
        if event.cause == "first_call" or self._programs[event.transform] <= WARM_UP or expected:
            return
        self._recent.append(event.time)
        if self._case is None or (not self._raging and event.time - self._case.until > WINDOW):
            self._case = Case.of(NAME, event)
        if not self._raging and len(self._recent) == MANY:
            self._raging = self._recent[-1] - self._recent[0] <= WINDOW
        self._case.add(event)
        if self._raging:
            yield self._case

    def _expected(self, event: Compilation) -> bool:
        """Returns whether all that is new is one more of a bounded set: a bucket, a mode, a place."""
        if event.cause == "shape":
            dimensions = sizes.dimensions(event.changes[:MOST_CHANGES])
            return bool(dimensions) and not any(self._one_too_many(each) for each in dimensions)
        if event.cause == "static_argument":
            statics = [each for each in event.changes[:MOST_CHANGES] if each.what == "static_argument"]
            return bool(statics) and not any(self._another_value(each) for each in statics)
        return event.cause in _PLACED

    def _one_too_many(self, varied: sizes.Varied) -> bool:
        seen = self._seen(varied.path, varied.number)
        if len(seen) < MOST_SEEN:
            seen.update((varied.before, varied.after))
        return not sizes.bucket_like(seen)

    def _another_value(self, change: Change) -> bool:
        if looks_alike(change) is not None:
            return True
        seen = self._seen(change.path, -1)
        if len(seen) < MOST_SEEN:
            seen.update(values(change))
        return unbounded(seen)

    def _seen(self, path: str, number: int) -> set[Any]:
        """Sizes of a dimension, or values of a static argument; of very many those of the first are kept."""
        key = (path, number)
        known = self._bounded.get(key)
        if known is None:
            known = set()
            if len(self._bounded) < MOST_BOUNDED:
                self._bounded[key] = known
        return known

    def tell(self, case: Case) -> Telling:
        """The rate, the time lost, and the causes by share."""
        # The first of them began before it was reported.
        took = case.until - case.since + case.seconds / case.count
        a_minute = case.count * 60 / max(took, 1e-9)
        rate = f"{a_minute:,.0f}" if a_minute >= 10 else f"{a_minute:.2g}"
        shares = {cause: count / case.count for cause, count in case.causes.most_common()}
        causes = ", ".join(f"{cause} {share:.0%}" for cause, share in shares.items())
        do = [_DO[cause] for cause, share in shares.items() if cause in _DO and share >= 0.2]
        return Telling(
            summary=(
                f"`{case.function}` recompiled {times(case.count)} after its warm-up{at_sites(case)} "
                f"in {duration(took)}, {rate} per minute, which took {duration(case.seconds)}: {causes}."
            ),
            advice=" ".join(do) or "See the reason of each compilation: what differs between calls must stay the same.",
            data={
                "per_minute": round(a_minute, 4),
                "window_seconds": round(took, 3),
                "causes": {cause: round(share, 4) for cause, share in shares.items()},
            },
        )


watch = RecompileStorm
