"""`idle_devices`: in the steps of a loop, devices have nothing to do because of what the host does."""

import functools
from collections.abc import Mapping
from typing import Any

from jaxobs.findings.cases import Case, Scene
from jaxobs.findings.compilations.support.case import duration
from jaxobs.findings.devices.support.profiled import LEAST_SECONDS, Profiled, in_samples

NAME = "idle_devices"
NEEDS = Scene

LEAST_SHARE = 0.25
"""Share of the devices' time. A sample is a few steps, and begins and ends within one."""

_REASONS: Mapping[str, tuple[str, str]] = {
    "input": (
        "the program waits for its input",
        "Load ahead and in parallel: more workers or read threads, and a prefetch buffer. Then wrap the input in "
        "`jaxobs.data` to see whether it keeps up.",
    ),
    "dispatch": (
        "the host is late with the next program",
        "Move what the host does between two steps into the compiled step, do it every N steps, or do it on another "
        "thread. If the step itself is short, run several steps in one call with `jax.lax.scan`.",
    ),
    "transfer": (
        "arrays move between host and devices",
        "Keep arrays on the devices from step to step. Read a value of the step before, or of every hundredth step, "
        "and put the next batch on the devices while the step runs.",
    ),
    "garbage_collection": (
        "Python collects garbage",
        "Call `gc.freeze()` after the start and `gc.disable()`, and collect between steps at the same time in each "
        "process.",
    ),
}
"""Cause and advice by what the host does; other reasons are findings of their own, or nobody's fault."""

_FOLLOWS: Mapping[str, tuple[str, ...]] = {
    "input": ("input_bound",), "transfer": ("host_sync",), "dispatch": ("host_sync",),
}  # fmt: skip


def follows(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the kinds that may bring the idle time about."""
    return _FOLLOWS.get(str(data.get("reason")), ())


def _case(found: Profiled, reason: str) -> Case | None:
    share = found.idle_share(reason)
    lost = found.lost_seconds(share)
    if share < LEAST_SHARE or lost < LEAST_SECONDS:
        return None
    because, advice = _REASONS[reason]
    place = found.place(reason)
    step = found.state.mean_seconds if found.state is not None else None
    return found.case(
        share,
        lost=lost,
        subject=reason,
        summary=f"The devices are idle {share:.0%} of the time in the steps of `{found.loop}`, because {because}.",
        advice=advice,
        where=place[0] if place is not None else None,
        evidence=[
            f"In {place[1]:.0%} of the looks at that time, the program's thread was at {place[0]}." if place else "",
            f"A step takes {duration(step)}." if step is not None else "",
        ],
        reason=reason,
    )


find = in_samples(*(functools.partial(_case, reason=reason) for reason in _REASONS))
