"""`long_compilation`: one compilation takes much of the process's time, whatever its cause."""

from collections.abc import Iterator

from jaxobs.facts.compilations import LONG_SECONDS, PHASES, Compilation, OpenCompilation
from jaxobs.findings.cases import Case, Scene
from jaxobs.findings.compilations import no_persistent_cache
from jaxobs.findings.compilations.support.case import duration, total_seconds
from jaxobs.recorder.oom_texts import human

NAME = "long_compilation"
NEEDS = Scene
FOLLOWS = (no_persistent_cache.NAME,)

SHARE = 0.2
"""Share of the process's time until then; until now if it was less than `LARGE_SECONDS` and nothing in it repeats: no
smaller part of a run is worth a word."""
LARGE_SECONDS = 60.0
LETS_GO = 1

UNROLLED = (
    "A Python loop under `jit` is unrolled: all iterations are compiled. Write it with `jax.lax.scan` or "
    "`jax.lax.fori_loop`, which compile the body once; for layers, stack their parameters and scan over them."
)
FOLDED = (
    "XLA computes with constants while it compiles. Pass the arrays as arguments instead of closing over them: "
    "programs then compute with them on the device."
)


def find(scene: Scene) -> Iterator[Case]:
    """Yields the longest avoidable compilation of each function, the longest other, and what lasts or never ended."""
    snapshot = scene.snapshot
    began = snapshot.process.started
    longest: dict[str, Compilation] = {}
    for event in sorted(scene.compilations, key=total_seconds):
        seconds = total_seconds(event)
        until = event.time if seconds >= LARGE_SECONDS or event.is_avoidable else scene.time
        if event.cache != "hit" and seconds >= SHARE * (until - began):
            longest[event.function if event.is_avoidable else ""] = event
    least = total_seconds(longest[""]) if "" in longest else LONG_SECONDS
    for row in (*snapshot.in_progress, *snapshot.unfinished):
        seconds, over = row.seconds(scene.time), row in snapshot.unfinished
        if seconds >= max(LONG_SECONDS if over else least, SHARE * ((row.ended or scene.time) - began)):
            longest = {key: event for key, event in longest.items() if event.function != row.function}
            yield _unfinished(row, seconds, over=over)
    yield from map(_case, longest.values())


def _case(event: Compilation) -> Case:
    seconds = total_seconds(event)
    phases = ", ".join(f"{phase} {duration(event.phases[phase])}" for phase in PHASES if phase in event.phases)
    size, times = event.repeated.get("operations", 0), event.repeated.get("times", 0)
    if times:
        loop = f", for the loop at {event.loop_site}" if event.loop_site else ""
        why, advice = f" It compiled the same {size:,} operations {times:,} times in a row{loop}.", UNROLLED
    elif event.is_avoidable:
        why, advice = f" It contains constants of {human(event.constant_bytes)}.", FOLDED
    else:
        why, advice = "", _kept(event)
    site = f" at {event.where}" if event.where else ""
    return Case(
        function=event.function, severity="warning" if event.is_avoidable else "info",
        where=event.loop_site or event.where,
        summary=(f"`{event.function}` took {duration(seconds)} to compile{site} ({phases}).{why}"),
        advice=advice, count=1, seconds=seconds, since=event.time - seconds,
        data={"phases": {phase: round(value, 6) for phase, value in event.phases.items()}, **event.repeated},
    )  # fmt: skip


def _unfinished(row: OpenCompilation, seconds: float, *, over: bool) -> Case:
    site = f" at {row.call_site}" if row.call_site else ""
    how = "had been compiling" if over else "has been compiling"
    end = " and was never finished" if over else ""
    return Case(
        function=row.function, severity="warning" if over else "info", where=row.call_site,
        summary=(
            f"`{row.function}` {how} for {duration(seconds)}{site}{end}; it {'was' if over else 'is'} in the phase "
            f"`{row.phase}`."
        ),
        advice=(
            "Let it finish to see what takes so long. If it is a Python loop under `jit`, all iterations are compiled: "
            "`jax.lax.scan` and `jax.lax.fori_loop` compile the body once. If it closes over large arrays, pass them "
            "as arguments: XLA computes with constants while it compiles."
        ),
        count=1, seconds=seconds, since=row.started if row.began is None else row.began, data={"phase": row.phase},
    )  # fmt: skip


def _kept(event: Compilation) -> str:
    """Advice on a program in which nothing repeats: large ones take minutes, but not at each start."""
    if event.cache == "disabled":
        return no_persistent_cache.ADVICE
    if event.uncached_because is not None:
        return f"The next start will recompile it. {event.uncached_detail or ''}".strip()
    return "No action is needed: it is in the persistent cache, from which the next start loads it."
