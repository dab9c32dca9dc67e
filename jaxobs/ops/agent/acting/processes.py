"""Looks whether a process can be asked for a capture now, and whether its steps take longer afterwards."""

from __future__ import annotations

import time

from jaxobs.facts.loops import LoopState
from jaxobs.facts.snapshot import Snapshot
from jaxobs.views import client

LEAST_FREE = 0.02
"""Share of a device's memory that must be free: a capture may allocate a little."""
STILL = 10.0
"""Typical steps without a step mean that the process hangs, or does something else; a capture might wait with it."""
STEPS_WATCHED = 5
"""Steps after an action that are compared with those before."""
LEAST_WATCHED, MOST_WATCHED = 5.0, 60.0
"""Seconds for which the process is watched then."""
PAUSE = 0.2


class RefusedError(Exception):
    """An action cannot be done; the message says why and what to do, as a sentence for a person."""


def look(url: str) -> Snapshot:
    """Returns the state of a process.

    Raises:
      RefusedError: it does not answer.
    """
    try:
        return client.fetch_snapshot(url)
    except (client.EndpointUnreachableError, client.NotAnEndpointError) as error:
        raise RefusedError(f"The process does not answer as jaxobs does: {error.brief}.") from error


def unsuitable(snapshot: Snapshot, now: float) -> str | None:
    """Returns why this is not a moment for a capture, as a sentence; None if it is one."""
    if snapshot.in_progress:
        return f"The process compiles {len(snapshot.in_progress)} program(s) at the moment. Try again later."
    if snapshot.wall is not None and snapshot.wall.category in ("checkpoint", "cache_load", "trace", "compile"):
        return f"The process is in `{snapshot.wall.category}` at the moment. Try again later."
    for device in snapshot.devices:
        memory = device.memory
        if memory is None or not memory.limit_bytes or memory.in_use_bytes is None:
            continue
        if memory.limit_bytes - memory.in_use_bytes < LEAST_FREE * memory.limit_bytes:
            return f"Less than {LEAST_FREE:.0%} of the memory of {device.device} is free."
    latest = _latest_loop(snapshot)
    if latest is not None and latest.ended is not None and latest.p50_seconds:
        since = now - latest.ended
        if since > max(STILL * latest.p50_seconds, 5.0):
            return (
                f"Its last step of `{latest.name}` ended {since:.0f} s ago, and a typical one takes "
                f"{latest.p50_seconds:.3g} s: it may hang. Look at its stacks instead (`jaxobs explain`)."
            )
    return None


def typical_step(snapshot: Snapshot) -> float | None:
    """Returns the seconds of a typical step of the loop that stepped last."""
    latest = _latest_loop(snapshot)
    return None if latest is None else latest.p50_seconds or latest.mean_seconds


def slower(url: str, before: float, factor: float) -> str | None:
    """Waits for some steps; returns why they are no longer as before, as a sentence, or None if they are.

    Args:
      before: seconds of a typical step before.
      factor: how many times longer than that a step may take.

    Raises:
      RefusedError: the process does not answer.
    """
    at_end, awaited = look(url), STEPS_WATCHED * factor * before
    until = time.monotonic() + min(MOST_WATCHED, max(LEAST_WATCHED, 4 * awaited))
    while True:
        latest = _latest_loop(look(url))
        known = next((each.steps for each in at_end.loops if latest is not None and each.name == latest.name), 0)
        made = latest.steps - known if latest is not None else 0
        if latest is not None and made >= STEPS_WATCHED:
            newest = sorted(latest.recent[-made:]) or [0.0]
            seconds = newest[len(newest) // 2]
            if seconds <= factor * before:
                return None
            return f"Steps take {seconds:.3g} s since, and took {before:.3g} s before."
        if time.monotonic() > until:
            break
        time.sleep(PAUSE)
    if awaited > MOST_WATCHED:  # nobody waits for five steps of minutes
        return None
    return f"It made {made} steps since, and a typical one took {before:.3g} s before."


def _latest_loop(snapshot: Snapshot) -> LoopState | None:
    return max((each for each in snapshot.loops if each.ended), key=lambda each: each.ended or 0.0, default=None)
