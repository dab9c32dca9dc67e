"""`recreated_functions`: a loop makes a lambda, closure, partial or bound method again, and JAX compiles each."""

from collections.abc import Iterator
from dataclasses import dataclass

from jaxobs.facts.compilations import Compilation
from jaxobs.findings.compilations.support.case import Case, Telling, duration, times
from jaxobs.findings.compilations.support.programs import Repetitions
from jaxobs.reasons.cures import is_trial

NAME = "recreated_functions"

SAME = 3
"""Compilations by which a new function object made a program that was there: waste for certain. Two may be two
experiments in one script."""

OTHERS = 8
"""Function objects from one line of code, where each makes another program: a handful (one for each layer, one
for each model) is made on purpose, ..."""
FEWEST, SECONDS, SHARE = 4, 10.0, 0.2
"""... unless from so many on they take so long, and this part of the time since the first of them."""

MOST_SITES = 8


@dataclass(slots=True)
class _Site:
    case: Case
    made: int = 0
    same: int = 0


class RecreatedFunctions:
    """Counts new function objects by call site."""

    def __init__(self) -> None:
        self._repetitions = Repetitions()
        self._sites: dict[str, _Site] = {}

    def see(self, event: Compilation) -> Iterator[Case]:
        """The loop at the call site, once it is one."""
        if event.eager or event.transform is not None or is_trial(event.function, event.library_site):
            return
        same = self._repetitions.take(event) is not None
        made = event.cause == "new_function"
        where = event.call_site or ""
        site = self._sites.get(where)
        # A function made again compiles for its second shape again as well.
        if not made and not (same and site is not None):
            return
        if site is None:
            if len(self._sites) >= MOST_SITES:
                return
            site = self._sites[where] = _Site(Case.of(NAME, event, where))
            site.case.about = site
        site.made += made
        site.same += same
        site.case.add(event)
        since = event.time - site.case.since
        costly = site.made >= FEWEST and site.case.seconds >= max(SECONDS, SHARE * since)
        if site.same >= SAME or site.made >= OTHERS or costly:
            yield site.case

    def tell(self, case: Case) -> Telling:
        """Tells the line, how often, and what to hoist."""
        site: _Site = case.about
        same, made = site.same, times(site.made)
        where = f" at {case.subject}" if case.subject else ""
        programs = f"{same} times a program that it already had"
        programs = {case.count: "the same program each time", 0: "a new program each time"}.get(same, programs)
        kind = _kind(case.function)
        return Telling(
            summary=(
                f"`{case.function}` was created again {made}{where}, and JAX compiled each new function object "
                f"({programs}), which took {duration(case.seconds)}."
            ),
            advice=(
                f"Create {kind} and its jit once, before the loop, and call it there. Pass what differs between "
                "iterations, such as values that it closes over, as arguments."
            ),
            data={"call_site": case.subject, "made": site.made, "same_program": same},
        )


def _kind(function: str) -> str:
    if function.endswith("<lambda>"):
        return "the lambda"
    return (
        "the local function" if "<locals>" in function else "the function object (a partial, a bound method, a wrapper)"
    )


watch = RecreatedFunctions
