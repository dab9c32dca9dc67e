"""Looks whether a process can be asked for a capture now, and whether its steps take longer afterwards."""

import statistics
import time
from collections.abc import Callable

from jaxobs.facts.loops import LoopState
from jaxobs.facts.snapshot import Snapshot
from jaxobs.ops.agent.acting.actions import RefusedError
from jaxobs.views import client

LEAST_FREE = 0.02
"""Share of a device's memory that must be free: a capture may allocate a little."""
STILL = 10.0
"""Typical steps without a step mean that the process hangs, or does something else; a capture might wait with it."""
STEPS_WATCHED = 5
"""Steps after an action that are compared with those before."""
LEAST_WATCHED, MOST_WATCHED = 5.0, 60.0
"""Seconds for which the process is watched then."""
PATIENCE, PAUSE = 3.0, 0.2
"""Seconds for which a process that is busy with something else is looked at, and between two looks."""


def look(url: str) -> Snapshot:
    """Returns the state of a process; raises RefusedError if it does not answer."""
    try:
        return client.fetch_snapshot(url)
    except (client.EndpointUnreachableError, client.NotAnEndpointError) as error:
        raise RefusedError(f"The process does not answer as jaxobs does: {error.brief}.") from error


def await_moment(url: str, clock: Callable[[], float]) -> float | None:
    """Waits for a moment in which a capture does no harm; returns the seconds of a typical step, if there are steps.

    Raises RefusedError if the process does not answer, or remains busy with something else.
    """
    until = time.monotonic() + PATIENCE
    while (why := _unsuitable(snapshot := look(url), clock())) is not None:
        if time.monotonic() > until:
            raise RefusedError(why)
        time.sleep(PAUSE)  # What recompiles in each step has its moments between, and is worth a profile.
    loop = _latest_loop(snapshot)
    return None if loop is None else loop.p50_seconds or loop.mean_seconds


def _unsuitable(snapshot: Snapshot, now: float) -> str | None:
    category = "compile" if snapshot.in_progress else snapshot.wall.category if snapshot.wall else ""
    if category in ("checkpoint", "cache_load", "trace", "compile"):
        return f"The process is in `{category}` at the moment. Try again later."
    for device in snapshot.devices:
        memory = device.memory
        if memory is None or not memory.limit_bytes or memory.in_use_bytes is None:
            continue
        if memory.limit_bytes - memory.in_use_bytes < LEAST_FREE * memory.limit_bytes:
            return f"Less than {LEAST_FREE:.0%} of the memory of {device.device} is free."
    loop = _latest_loop(snapshot)
    if loop is None or loop.ended is None or not loop.p50_seconds:
        return None
    since = now - loop.ended
    if since <= max(STILL * loop.p50_seconds, 5.0):
        return None
    typical = f"a typical one takes {loop.p50_seconds:.3g} s"
    told = f"Its last step of `{loop.name}` ended {since:.0f} s ago, and {typical}: it may hang."
    return f"{told} Look at its stacks instead (`jaxobs explain`)."


def slower(url: str, before: float, factor: float) -> str | None:
    """Waits for some steps; returns why they take longer than `factor` times `before`, as a sentence; None if not."""
    awaited, made = STEPS_WATCHED * factor * before, 0
    until = time.monotonic() + min(MOST_WATCHED, max(LEAST_WATCHED, 4 * awaited))
    try:
        counted = {loop.name: loop.steps for loop in look(url).loops}
        while made < STEPS_WATCHED and time.monotonic() <= until:
            time.sleep(PAUSE)
            loop = _latest_loop(look(url))
            made = 0 if loop is None else loop.steps - counted.get(loop.name, 0)
    except RefusedError as error:
        return f"Afterwards: {error}"
    if loop is not None and made >= STEPS_WATCHED:
        seconds = statistics.median_high(loop.recent[-made:] or [0.0])
        told = f"Steps take {seconds:.3g} s since, and took {before:.3g} s before."
        return told if seconds > factor * before else None
    told = f"It made {made} steps since, and a typical one took {before:.3g} s before."
    return told if awaited <= MOST_WATCHED else None  # Nobody waits for five steps of minutes.


def _latest_loop(snapshot: Snapshot) -> LoopState | None:
    return max((each for each in snapshot.loops if each.ended), key=lambda each: each.ended or 0.0, default=None)
