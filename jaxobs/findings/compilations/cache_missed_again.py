"""`cache_missed_again`: the persistent cache had no entry for what an earlier process had compiled."""

from collections import Counter
from collections.abc import Iterator

from jaxobs.facts.compilations import CacheLookup
from jaxobs.findings.cases import Case, Scene
from jaxobs.findings.compilations.support.case import duration, plural

NAME = "cache_missed_again"
NEEDS = Scene

LEAST_SECONDS = 1.0
"""Time that the compiler took for them. Below, a hit would have saved little."""

_MOST_SHOWN = 3


def find(scene: Scene) -> Iterator[Case]:
    """Yields one case: mostly the same difference explains all programs."""
    missed: dict[str, CacheLookup] = {}
    for event in scene.lookups:
        if event.result == "miss" and event.reason is not None:
            missed[event.function] = event
    seconds = sum(scene.compile_seconds.get(function, 0.0) for function in missed)
    if seconds < LEAST_SECONDS:
        return
    differs = Counter(part for event in missed.values() for part in event.differs)
    costly = sorted(missed, key=lambda function: -scene.compile_seconds.get(function, 0.0))
    parts = ", ".join(f"{part} ({count:,})" for part, count in differs.most_common(_MOST_SHOWN))
    first = missed[costly[0]]
    yield Case(
        function=costly[0],
        summary=(
            f"The persistent cache missed {plural(len(missed), 'program')} that an earlier process had compiled, "
            "and recompiling took "
            f"{duration(seconds)}" + (f"; parts of the key that differ: {parts}." if parts else ".")
        ),
        advice=f"{first.reason} To check the cache before the next start, run `jaxobs cache verify`.",
        count=len(missed),
        seconds=seconds,
        since=first.time,
        evidence=[f"`{function}`: {missed[function].reason}" for function in costly[:_MOST_SHOWN]],
        data={"functions": costly, "differs": dict(differs)},
    )
