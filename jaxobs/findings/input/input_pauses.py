"""`input_pauses`: the input pauses now and then, as at the beginning of each epoch, and that costs time."""

from collections.abc import Iterator

from jaxobs.findings.cases import Case, Scene
from jaxobs.findings.compilations.support.case import duration
from jaxobs.findings.steps.support.pauses import FEWEST, are_of_input, excess, slow_steps

NAME = "input_pauses"
NEEDS = Scene

LEAST_SHARE = 0.1
"""Share of the process's time. An epoch that begins with a shuffle is not a fault; below, nobody would notice it."""

FOLLOWS = ("input_bound",)


def find(scene: Scene) -> Iterator[Case]:
    """A case for each loop."""
    by_loop = slow_steps(scene)
    wall = scene.snapshot.wall
    for loop in scene.snapshot.loops:
        known = by_loop.get(loop.name, [])
        if wall is None or len(known) < FEWEST or not are_of_input(scene, loop, known):
            continue
        lost, count = excess(loop, known), max(loop.slow, len(known))
        if lost < LEAST_SHARE * wall.wall_seconds:
            continue
        yield Case(
            function=loop.name,
            severity="info",
            summary=(
                f"Before {count:,} of {loop.steps:,} steps of `{loop.name}` the program waited "
                f"{duration(lost / count)} for its input on average, {duration(lost)} in total."
            ),
            advice=(
                "If these are the beginnings of epochs: keep the loader's workers between epochs "
                "(`persistent_workers`), shuffle indices instead of data, and let it load ahead into the next epoch."
            ),
            count=count,
            seconds=lost,
            since=known[0].time,
            evidence=[f"Step {each.last:,}: {each.reason or duration(each.seconds)}" for each in known[:3]],
            data={"loop": loop.name, "pause_seconds": lost / count},
        )
