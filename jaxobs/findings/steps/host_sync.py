"""`host_sync`: the host reads an array in each step, and the devices are idle until it dispatches the next one."""

from collections.abc import Iterator

from jaxobs.facts.loops import LoopState
from jaxobs.findings import parts
from jaxobs.findings.cases import Case, Scene
from jaxobs.findings.compilations.support.case import duration

NAME = "host_sync"
NEEDS = Scene
FOLLOWS = ("finite_differences",)

LEAST_SHARE = 0.15
"""Share of the steps' time. The looks are a sample, and below it there is little to gain."""
LEAST_SECONDS = 1.0


def find(scene: Scene) -> Iterator[Case]:
    """Yields a case for each loop."""
    if any(parts.large(scene.snapshot, each) for each in ("input_wait", "transfer", "idle")):
        return  # what the devices are idle for is known, and is a finding
    most = parts.total(scene.snapshot)
    yield from filter(None, (_case(loop, most) for loop in scene.snapshot.loops))


def _case(loop: LoopState, most: float) -> Case | None:
    wait, mean = loop.host_wait, loop.mean_seconds
    if wait is None or mean is None or wait.idle_share < LEAST_SHARE:
        return None
    saves = wait.idle_share * min(mean * loop.steps, most)  # the latest steps may be longer than all were
    if saves < LEAST_SECONDS:
        return None
    return Case(
        function=loop.name,
        severity="info",
        summary=(
            f"The host waits for an array in each step of `{loop.name}`, {wait.share:.0%} of the steps' time. "
            f"Meanwhile it dispatches nothing, so the devices are idle up to {wait.idle_share:.0%} of the time."
        ),
        advice=(
            "Read the value of the step before, or of every hundredth step: then the host dispatches ahead, and the "
            "devices go on. If the next step needs the value on the host, move that work into the compiled step."
        ),
        where=wait.where,
        count=loop.steps,
        seconds=saves,
        evidence=[
            f"In {round(wait.share * wait.looks):,} of {wait.looks:,} looks at steps of a usual length the thread "
            f"waited for an array, most often at {wait.where}.",
            f"A step takes {duration(mean)}.",
        ],
        data={"loop": loop.name, "share": wait.share, "idle_share": wait.idle_share, "looks": wait.looks},
    )
