"""`executable_leak`: compiled programs accumulate."""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from jaxobs.findings import growth
from jaxobs.findings.cases import Case
from jaxobs.findings.growth import Run
from jaxobs.findings.leaks import Growing, Sample, clock, pace

NAME = "executable_leak"

LEAST_MORE = 2 * growth.LEAST_RISES
"""Programs more than at its start: warm-up and a second round of evaluation compile fewer in its course."""
_MOST_FUNCTIONS = 5

FOLLOWS = (
    "recreated_functions", "unbounded_shapes", "static_values", "identity_hashed_static", "unbounded_structures",
    "forgotten_programs", "recompile_storm", "eager_recompiles",
)  # fmt: skip
"""Each of them leaves programs behind."""


class ExecutableLeaks:
    """The number of executables that are loaded."""

    def series(self, sample: Sample) -> Iterable[tuple[Hashable, float]]:
        """Yields the number of loaded programs, if it is known."""
        if sample.executables is not None:
            yield "executables", sample.executables

    def matters(self, key: Hashable, run: Run, sample: Sample, cases: Sequence[Growing]) -> bool:
        """Decides by the number, without single operations met for the first time: there are only so many."""
        since = (each for each in sample.compilations() if each.time >= run.since.time)
        first = sum(each.eager and each.cause == "first_call" for each in since)
        return run.grown - first >= LEAST_MORE

    def full_in(self, run: Run, key: Hashable, sample: Sample) -> float:
        """Knows no sizes of programs."""
        return math.inf

    def belongs(self, key: Hashable, run: Run, case: Growing, sample: Sample) -> bool:
        """There is only one series."""
        return True

    def subject(self, key: Hashable) -> str:
        """Always the same."""
        return "compiled programs"

    def tell(self, case: Growing, sample: Sample) -> Case:
        """Tells how many, since when, and which functions compile them."""
        run = case.run
        since = [each for each in sample.compilations() if each.time >= run.since.time]
        functions = Counter("single operations" if each.eager else f"`{each.function}`" for each in since)
        causes = Counter(each.cause for each in since)
        most = functions.most_common(_MOST_FUNCTIONS)
        who = f", most of them for {most[0][0]}" if most else ""
        return Case(
            summary=(
                f"{run.grown:,.0f} more compiled programs are loaded than at {clock(run.since.time)}{who}: "
                f"{pace(run, run.grown, lambda number: f'{number:,.3g}')}, and none was freed."
            ),
            advice=(
                "See the reasons of these compilations (`jaxobs explain`): each new shape, static value or function "
                "object adds a program that stays. Pad to a few shapes, and create jitted functions once, not in a "
                "loop. `jax.clear_caches()` frees all of them."
            ),
            evidence=tuple(f"{count:,} compiled for {name} since." for name, count in most),
            data={
                "executables": round(sample.executables or 0),
                "more": round(run.grown),
                "calls": run.calls,
                "functions": {name.strip("`"): count for name, count in most},
                "causes": dict(causes),
            },
        )


leak = ExecutableLeaks
