"""`long_compilation`: one compilation takes much of the process's time, whatever its cause."""

from __future__ import annotations

from collections.abc import Iterator

from jaxobs.facts.compilations import LONG_SECONDS, PHASES, Compilation
from jaxobs.findings.cases import Case
from jaxobs.findings.compilations import no_persistent_cache
from jaxobs.findings.compilations.support.case import duration, total_seconds
from jaxobs.findings.scene import Scene

NAME = "long_compilation"
NEEDS = Scene
FOLLOWS = (no_persistent_cache.NAME,)
ABOUT = "A single compilation takes much of the process's time."

SHARE = 0.2
"""Share of the process's time until then. Of a long run it is less and less: no part below a fifth is worth a word."""

TOLD_WHEN = (
    f"one compilation took {LONG_SECONDS:g} s and {SHARE:.0%} of the process's time until then. It is a warning if "
    "most of its program is blocks of operations that repeat, and information otherwise"
)

UNROLLED = (
    "A Python loop under `jit` is unrolled: all iterations are compiled. Write it with `jax.lax.scan` or "
    "`jax.lax.fori_loop`, which compile the body once; for layers, stack their parameters and scan over them."
)


def find(scene: Scene) -> Iterator[Case]:
    """Yields the longest compilation of each function."""
    longest: dict[str, Compilation] = {}
    for event in scene.compilations:
        known = longest.get(event.function)
        if event.cache != "hit" and (known is None or total_seconds(event) > total_seconds(known)):
            longest[event.function] = event
    for event in longest.values():
        seconds = total_seconds(event)
        share = seconds / max(event.time - scene.snapshot.process.started, seconds)
        if share >= SHARE and (event.repeated or not no_persistent_cache.explains(scene)):
            yield _case(event, seconds, share)


def _case(event: Compilation, seconds: float, share: float) -> Case:
    phases = ", ".join(f"{phase} {duration(event.phases[phase])}" for phase in PHASES if phase in event.phases)
    size, times = event.repeated.get("operations", 0), event.repeated.get("times", 0)
    same = f" It compiled the same {size:,} operations {times:,} times in a row." if times else ""
    site = f" at {event.where}" if event.where else ""
    return Case(
        function=event.function,
        severity="warning" if times else "info",
        where=event.where,
        summary=(
            f"`{event.function}` took {duration(seconds)} to compile{site}, {share:.0%} of the process's time until "
            f"then ({phases}).{same}"
        ),
        advice=UNROLLED if times else _kept(event),
        count=1,
        seconds=seconds,
        since=event.time - seconds,
        data={"phases": {phase: round(value, 6) for phase, value in event.phases.items()}, **event.repeated},
    )


def _kept(event: Compilation) -> str:
    """Advice on a program in which nothing repeats: large ones take minutes, but not at each start."""
    if event.cache == "disabled":
        return no_persistent_cache.ADVICE
    if event.uncached_because is not None:
        return f"The next start will compile it again. {event.uncached_detail or ''}".strip()
    return "No action is needed: it is in the persistent cache, from which the next start loads it."
