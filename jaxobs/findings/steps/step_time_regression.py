"""`step_time_regression`: steps take longer than they did, by a call that each has since, or a part in the profile."""

import math
import statistics
from collections.abc import Iterator, Mapping

from jaxobs.facts.loops import LoopState
from jaxobs.facts.profile_samples import IDLE, LoopBaseline, median_parts
from jaxobs.facts.snapshot import Snapshot
from jaxobs.findings.cases import Case, Scene
from jaxobs.findings.compilations.support.case import duration
from jaxobs.findings.devices.support.profiled import MOST, Profiled, profiled
from jaxobs.findings.leaks import clock

NAME = "step_time_regression"
NEEDS = Scene

LEAST_RATIO = 1.25
LEAST_SECONDS = 1.0
_MAJORITY = 0.5
_NEARLY_ALL = 0.8
_NOTABLE = 0.1
_STEADY = 1.1

LEAST_MEANS, LEAST_TIMES = 3, 1.5
"""Spans of the history on each side of the first call, and how many times as long a step is behind it."""
AROUND_SECONDS = 1.0
"""Seconds before and behind the first call that count for neither side: its compilation is among them."""
EACH_STEP = 0.9
"""Calls in a step, from which on each step has one."""

FOLLOWS = ("input_bound", "idle_devices", "exposed_collectives", "host_sync", "host_bound")


def find(scene: Scene) -> Iterator[Case]:
    """At most one case of the profile, and one for each loop whose steps call one function more."""
    yield from filter(None, (_of_a_call(each, scene.snapshot) for each in scene.snapshot.loops))
    found, state = profiled(scene.snapshot), scene.snapshot.profile
    if found is None or state is None or len(found.samples) < MOST:
        return
    baseline = next((each for each in state.baselines if each.loop == found.loop), None)
    if baseline is not None:
        case = _case(found, baseline)
        if case is not None:
            yield case


def _of_a_call(loop: LoopState, snapshot: Snapshot) -> Case | None:
    """Returns a case if steps take longer since a function was compiled that each of them has called from then on."""
    each_step = {name for name, calls in loop.calls.items() if calls >= EACH_STEP}
    paces = {
        each.name: statistics.median(mean for _, mean, _ in each.history) for each in snapshot.loops if each.history
    }
    for function in snapshot.functions:
        since = function.last_compiled
        if since is None or function.compiled != 1 or function.name not in each_step | paces.keys():
            continue
        before = sorted(mean for when, mean, _ in loop.history if when < since - AROUND_SECONDS)
        after = sorted(mean for when, mean, _ in loop.history if when > since + AROUND_SECONDS)
        if min(len(before), len(after)) < LEAST_MEANS or not before[0] > 0.0:
            continue
        if after[len(after) // 4] <= LEAST_TIMES * before[-1 - len(before) // 4]:
            continue
        took, takes = statistics.median(before), statistics.median(after)
        own = paces.get(function.name, math.inf)  # what steps call may be a loop of its own
        lost = (1.0 - took / takes) * (loop.history[-1][0] - since)
        as_often = function.name in each_step or EACH_STEP * own <= takes <= own / EACH_STEP
        if not as_often or lost < LEAST_SECONDS:
            continue
        return Case(
            function=loop.name, subject=function.name, severity="info", seconds=lost, since=since, count=len(after),
            summary=(
                f"A step{'' if loop.name == function.name else f' of `{loop.name}`'} takes {duration(takes)}, and took "
                f"{duration(took)} until {clock(since)}: each step calls `{function.name}` since then."
            ),
            advice=f"If not each step needs `{function.name}`, call it every so many steps.",
            data={"loop": loop.name, "ratio": takes / took},
        )  # fmt: skip
    return None


def _case(found: Profiled, baseline: LoopBaseline) -> Case | None:
    times = [each.step_seconds for each in found.samples if each.step_seconds is not None]
    if len(times) < MOST or min(times) <= baseline.most_step_seconds:
        return None
    step = statistics.median(times)
    longer = step - baseline.step_seconds
    lost = longer / step * (found.samples[-1].time - found.samples[0].time)
    if step < LEAST_RATIO * baseline.step_seconds or lost < LEAST_SECONDS:
        return None
    now = median_parts(found.samples)
    growth = {
        (function, name): seconds - baseline.parts.get(function, {}).get(name, 0.0)
        for function, each in now.items()
        for name, seconds in each.items()
    }
    part = max(growth, key=lambda each: growth[each], default=None)
    if found.on_cpus and not (
        part and growth[part] >= _NEARLY_ALL * longer and _others_are_steady(baseline, now, part)
    ):
        return None
    because, advice, where = _because(found, part if part and growth[part] >= _MAJORITY * longer else None)
    return Case(
        function=found.loop,
        severity="info",
        summary=(
            f"A step of `{found.loop}` takes {duration(step)}, and took {duration(baseline.step_seconds)} at first: "
            f"{because}."
        ),
        advice=advice,
        where=where,
        count=len(found.samples),
        seconds=lost,
        since=found.samples[0].time,
        evidence=[
            f"{_name(*each)}: {duration(now[each[0]][each[1]])} of a step, "
            f"{duration(now[each[0]][each[1]] - growth[each])} at first."
            for each in sorted(growth, key=lambda each: -growth[each])[:3]
            if growth[each] > 0
        ],
        data={"loop": found.loop, "ratio": step / baseline.step_seconds, "samples": len(found.samples)},
    )


def _others_are_steady(
    baseline: LoopBaseline, now: Mapping[str, Mapping[str, float]], part: tuple[str, str]
) -> bool:  # fmt: skip
    """Whether the rest of the step takes as long as at first: another program on the CPU would slow it down, too."""
    notable = {
        (function, name): seconds
        for function, each in baseline.parts.items()
        for name, seconds in each.items()
        if (function, name) != part and seconds >= _NOTABLE * baseline.step_seconds
    }
    later = {each: now.get(each[0], {}).get(each[1], 0.0) for each in notable}
    return bool(notable) and all(later[each] <= _STEADY * seconds for each, seconds in notable.items())


def _because(found: Profiled, part: tuple[str, str] | None) -> tuple[str, str, str | None]:
    """Returns what takes longer, what to do about it, and the line."""
    if part is None:
        return (
            "no single part of it takes most of that",
            "Check whether the devices are slower, by their clock or because another program uses them, and compare "
            "two captures with `jaxobs profile NEW --compare OLD`.",
            None,
        )
    function, name = part
    if function == IDLE:
        place = found.place(name)
        return (
            f"the devices are idle for longer, with the reason `{name}`",
            "Check what the host does between two steps, at the line that is named here.",
            place[0] if place is not None else None,
        )
    largest = max(
        (each for each in found.samples[-1].operations if (each.function, each.category) == part),
        key=lambda each: each.device_seconds,
        default=None,
    )
    at = f", most of all `{largest.scope or largest.operation}`" if largest is not None else ""
    return (
        f"operations of the kind `{name}` in `{function}` take longer{at}",
        "Check what changed in the shapes and dtypes that the step is called with; `jaxobs explain` lists its "
        "recompilations. Compare two captures with `jaxobs profile NEW --compare OLD`.",
        largest.source if largest is not None else None,
    )


def _name(function: str, name: str) -> str:
    return f"Idle, `{name}`" if function == IDLE else f"`{name}` in `{function}`"
