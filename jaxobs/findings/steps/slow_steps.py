"""`slow_steps`: some steps of a loop take several times as long as the others."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jaxobs.facts.loops import LoopState
from jaxobs.facts.steps import Step
from jaxobs.findings.cases import Case, Scene
from jaxobs.findings.compilations.support.case import duration
from jaxobs.findings.steps.support.pauses import FEWEST, MAJORITY, are_before, are_of_input, excess, slow_steps

NAME = "slow_steps"
NEEDS = Scene

LEAST_SECONDS = 1.0
LEAST_SHARE = 0.02
"""Share of the loop's time. Below, fixing them would not be noticed."""

FOLLOWS = ("input_bound", "straggler")
FOLLOWS_COMPILING = (
    "unbounded_shapes", "recreated_functions", "static_values", "identity_hashed_static", "unbounded_structures",
    "flip_flop", "forgotten_programs", "weak_type_at_start", "two_shardings_at_start", "eager_recompiles",
    "recompile_storm", "costly_recompilations", "cold_requests",
)  # fmt: skip
"""Kinds that may bring it about if most of the steps compiled one of the same functions."""

_MOST_SHOWN = 3
_MOST_FUNCTIONS = 16


def follows(data: Mapping[str, Any]) -> tuple[str, ...]:
    """The kinds that bring a case with these figures about."""
    return (*FOLLOWS, *FOLLOWS_COMPILING) if data.get("functions") else FOLLOWS


def find(scene: Scene) -> Iterator[Case]:
    """A case for each loop."""
    by_loop = slow_steps(scene)
    for loop in scene.snapshot.loops:
        found = by_loop.get(loop.name, [])
        if len(found) >= FEWEST and not are_of_input(scene, loop, found):
            case = _case(loop, found)
            if case is not None:
                yield case


def _case(loop: LoopState, known: Sequence[Step]) -> Case | None:
    slow = max(loop.slow, len(known))
    lost = excess(loop, known)
    total = loop.seconds.sum if loop.seconds is not None else 0.0
    if lost < LEAST_SECONDS or (total and lost < LEAST_SHARE * total):
        return None
    usual = sorted(step.typical_seconds or 0.0 for step in known)[len(known) // 2]
    why, advice = _why(known)
    worst = sorted(known, key=lambda step: -step.seconds)[:_MOST_SHOWN]
    return Case(
        function=loop.name,
        summary=(
            f"{slow:,} of {loop.steps:,} steps of `{loop.name}` took more than 3 times the typical {duration(usual)}, "
            f"{duration(lost)} more in total{why}."
        ),
        advice=advice,
        # Pauses at one distance: an epoch begins, or something is saved or evaluated.
        severity="info" if are_before(known) and _every(known) is not None else "warning",
        count=slow,
        seconds=lost,
        since=known[0].time,
        evidence=[f"Step {step.last:,}: {step.reason or duration(step.seconds)}" for step in worst],
        data={"loop": loop.name, "typical_seconds": usual, "every": _every(known), "functions": _functions(known)},
    )


def _functions(known: Sequence[Step]) -> list[str]:
    """Returns what compiled in the steps, if most of them compiled something."""
    if not _compiled(known):
        return []
    return list(dict.fromkeys(name for step in known for name in step.functions))[:_MOST_FUNCTIONS]


def _compiled(known: Sequence[Step]) -> bool:
    return sum(step.compilations > 0 for step in known) > MAJORITY * len(known)


def _why(known: Sequence[Step]) -> tuple[str, str]:
    """Returns what most of the steps have in common, and what to do about that."""
    compiled = sum(step.compilations > 0 for step in known)
    outside = sum((step.outside_seconds or 0.0) > step.seconds / 2 for step in known)
    every = _every(known)
    apart = f", every {every:,} steps" if every is not None else ""
    if _compiled(known):
        return f"{apart}; {compiled:,} of {len(known):,} compiled something", (
            "Stop the recompilations in these steps: the evidence and `jaxobs explain` show what compiled, and why."
        )
    if outside > MAJORITY * len(known):
        return f"{apart}; in {outside:,} of {len(known):,} most of the time passed before the step began", (
            "Check what runs between two steps: the wait for the next batch, logging, or saving. Wrap the loader in "
            "`jaxobs.data(loader)` to see how much of it is input."
        )
    if every is not None:
        return apart, (
            f"Check what the program does every {every:,} steps: logging, an evaluation, a checkpoint, or a transfer "
            "to the host. Mark it with `jaxobs.phase(...)`, so that it does not count as a step."
        )
    return "", (
        "Capture a profile that contains a slow step (`jaxobs.capture`), and compare it with a typical one. Common "
        "causes are garbage collection, a busy host, and waiting for another process."
    )


def _every(known: Sequence[Step]) -> int | None:
    """The distance that most of them have from the one before, if it is one distance."""
    gaps = Counter(after.last - before.last for before, after in itertools.pairwise(known))
    if not gaps:
        return None
    gap, count = gaps.most_common(1)[0]
    return gap if gap > 1 and count >= FEWEST - 1 and count > MAJORITY * sum(gaps.values()) else None
