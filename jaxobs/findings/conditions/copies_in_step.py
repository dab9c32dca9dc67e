"""`copies_in_step`: in the steps of a loop, devices move data around for much of their time instead of computing."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from jaxobs.facts.profile_samples import ProfileSample
from jaxobs.findings.conditions.support.profiled import Profiled, profiled
from jaxobs.findings.conditions.support.scene import Case, Scene

NAME = "copies_in_step"
ABOUT = "In the steps of a loop, the devices copy arrays or move them between memories for much of their time."

LEAST_SHARE = 0.3
LEAST_SECONDS = 1.0
_MOVES = ("copy", "transfer")

TOLD_WHEN = (
    f"in the latest samples that `profile_interval` takes, operations of the kinds `copy` and `transfer` took "
    f"{LEAST_SHARE:.0%} of the time of all operations or more, and {LEAST_SECONDS:g} s in all"
)


def find(scene: Scene) -> Iterator[Case]:
    """At most one case."""
    found = profiled(scene.snapshot)
    case = None if found is None else _case(found)
    if case is not None:
        yield case


def _case(found: Profiled) -> Case | None:
    share = statistics.median(map(_share, found.samples))
    busy = statistics.median(sum(each.busy.values()) / len(each.busy) for each in found.samples)
    lost = found.lost_seconds(share * busy)
    if share < LEAST_SHARE or lost < LEAST_SECONDS:
        return None
    moves = [each for each in found.samples[-1].operations if each.category in _MOVES]
    top = max(moves, key=lambda each: each.device_seconds, default=None)
    return found.case(
        share,
        lost=lost,
        summary=(
            f"In the steps of `{found.loop}`, {share:.0%} of the devices' work is copying and moving arrays"
            f"{f': the largest part is `{top.scope or top.operation}`' if top is not None else ''}."
        ),
        advice=(
            "Look for transposes and reshapes that change the layout, concatenations that could be written in place, "
            "arguments that could be donated (`donate_argnums`), and arrays that are kept on the host."
        ),
        where=top.source if top is not None else None,
        evidence=[
            f"`{each.scope or each.operation}`{f' at {each.source}' if each.source else ''}: {each.share:.0%} of "
            "the devices' work."
            for each in sorted(moves, key=lambda each: -each.device_seconds)[:3]
        ],
    )


def _share(sample: ProfileSample) -> float:
    seconds = [(name, spent) for each in sample.functions for name, spent in each.seconds.items()]
    whole = sum(spent for _, spent in seconds)
    return sum(spent for name, spent in seconds if name in _MOVES) / whole if whole else 0.0
