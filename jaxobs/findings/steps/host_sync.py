"""`host_sync`: the host reads an array in each step, and the devices are idle until it dispatches the next one."""

from collections.abc import Iterator

from jaxobs.facts.loops import LoopState
from jaxobs.facts.transfers import TransferState
from jaxobs.findings import parts
from jaxobs.findings.cases import UNKNOWN, Case, Scene
from jaxobs.findings.compilations.support.case import duration, times

NAME = "host_sync"
NEEDS = Scene
FOLLOWS = ("finite_differences",)

LEAST_SHARE = 0.15
"""Share of the steps' time. The looks are a sample, and below it there is little to gain."""
LEAST_SECONDS = 1.0
MOST_APART = 0.5
"""A line of a lazy program reads in the loop if it reads in this part of the steps."""
FEWEST_READS = 10


def find(scene: Scene) -> Iterator[Case]:
    """Yields a case for each loop."""
    if any(parts.large(scene.snapshot, each) for each in ("input_wait", "transfer", "idle")):
        return  # what the devices are idle for is known, and is a finding
    most = parts.total(scene.snapshot)
    yield from filter(None, (_case(loop, most) for loop in scene.snapshot.loops))
    if "torch_xla" in scene.snapshot.process.versions and scene.snapshot.loops:
        loop = max(scene.snapshot.loops, key=_took)
        yield from filter(None, (_read(loop, each) for each in scene.snapshot.transfers))


def _took(loop: LoopState) -> float:
    return (loop.mean_seconds or 0.0) * loop.steps if loop.seconds is None else loop.seconds.sum


def _read(loop: LoopState, line: TransferState) -> Case | None:
    """A line of a lazy program that reads in most steps: each read has the graph run, and waits for it."""
    took = _took(loop)
    share = min(line.wait_seconds / took, 1.0) if took else 0.0
    if line.waits < max(MOST_APART * loop.steps, FEWEST_READS) or share < LEAST_SHARE:
        return None
    if line.site == UNKNOWN or line.wait_seconds < LEAST_SECONDS:
        return None
    return Case(
        function=loop.name,
        severity="info",
        subject=line.site,
        summary=(
            f"{line.site} reads a tensor in the loop `{loop.name}`, {times(line.waits)} in {loop.steps:,} steps, and "
            f"waits {duration(line.wait_seconds)}, {share:.0%} of the steps' time. Meanwhile the host records no "
            "operations, and then the device waits for these."
        ),
        advice=(
            "Read it every hundredth step, keep a sum on the device, or hand the read to "
            "`torch_xla.core.xla_model.add_step_closure`: it then runs after the step's graph was launched."
        ),
        where=line.site,
        count=line.waits,
        seconds=min(line.wait_seconds, took - min(line.wait_seconds, took)),
        since=line.since,
        evidence=[f"A read takes {duration(line.wait_seconds / line.waits)}, the graph that computes it included."],
        data={"loop": loop.name, "share": share},
    )


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
