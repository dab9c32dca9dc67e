"""Slow steps that are not: the program paused before them, mostly because it waited for its input."""

from collections.abc import Sequence

from jaxobs.facts.loops import LoopState
from jaxobs.facts.steps import Step
from jaxobs.findings.cases import Scene

FEWEST = 3
"""Slow steps that count. Fewer are chance: a pause of the host, a page that was not in memory."""
MAJORITY = 0.6
OF_INPUT = 0.8
"""Share of the pauses that is waited for input, if these are waits for input."""


def slow_steps(scene: Scene) -> dict[str, list[Step]]:
    """The slow steps that are known, by loop."""
    found: dict[str, list[Step]] = {}
    for step in scene.steps:
        if step.slow and step.typical_seconds is not None:
            found.setdefault(step.loop, []).append(step)
    return found


def excess(loop: LoopState, known: Sequence[Step]) -> float:
    """Seconds that all slow steps took more than typical ones: of very many only the latest are known."""
    slow = max(loop.slow, len(known))
    return sum(step.seconds - (step.typical_seconds or 0.0) for step in known) * slow / len(known)


def are_before(known: Sequence[Step]) -> bool:
    """Returns whether most of the time passed before the steps, of most of them."""
    before = [step for step in known if (step.outside_seconds or 0.0) > step.seconds / 2 and not step.compilations]
    return len(before) > MAJORITY * len(known)


def are_of_input(scene: Scene, loop: LoopState, known: Sequence[Step]) -> bool:
    """Returns whether slow steps are waits for input before steps, as at the beginning of each epoch."""
    waited = scene.snapshot.wall.seconds.get("input_wait", 0.0) if scene.snapshot.wall is not None else 0.0
    return are_before(known) and waited >= OF_INPUT * excess(loop, known)
