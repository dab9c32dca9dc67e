"""`input_bound`: waiting for input takes a large part of the program's time, and the devices are idle meanwhile."""

from collections.abc import Iterator

from jaxobs.findings import parts
from jaxobs.findings.cases import Case, Scene

NAME = "input_bound"
NEEDS = Scene

LEAST_SECONDS = 10.0
"""A cold file cache or a shuffle buffer that fills is over by then."""
LETS_GO = 12
"""A minute of looks: a share near the bound comes and goes."""

_ADVICE = (
    "Load ahead and in parallel: more workers or read threads, a prefetch buffer, decoding and augmentation off the "
    "training thread. If input is still the bottleneck then, store the data decoded, or closer to the host."
)
_WAITS = (
    "If the line takes from a queue, the side that fills the queue is too slow: decode whole batches at once, in "
    "processes, since Python threads take turns, or store what was decoded. If the line saves or evaluates, mark it "
    f"with `jaxobs.phase`, and save less often or in another thread. Else: {_ADVICE}"
)
_RUNS = (
    "The line runs Python on the thread of the loop. Keep results that recur, compute whole batches with NumPy, or "
    "prepare the batches ahead in processes, since Python threads take turns."
)
_SELDOM = (
    "Few steps wait, and those for long, as at the start of an epoch. Make whatever starts there once, before the "
    "loop: a loader with its workers can serve all epochs (`num_epochs`, `persistent_workers=True`), and the loop can "
    "keep a shuffle or a cache, or make it in another thread. More workers start no faster. If the line evaluates or "
    "saves, mark it with `jaxobs.phase`."
)
SELDOM_SECONDS = 1.0
SELDOM_TIMES = 10.0
"""Seconds of a wait, and how many times a usual step it lasts, if few steps wait for long."""
_LOCKS = (
    "The line takes a lock, and another thread holds the lock meanwhile. Have that thread prepare its data without the "
    "lock, and hold the lock only to append the data; neither of the two may wait, sleep or compute while it holds it."
)
_PAUSES = "The line sleeps. If the loop keeps a pace by the pause, change nothing; else leave the pause out."


def find(scene: Scene) -> Iterator[Case]:
    """Yields a case for each input that is the bottleneck, or for the loop that waits for what nobody declared.

    A loop that carries nothing from call to call may serve what comes, and a `sleep` in the loop itself keeps a pace.
    """
    for state in scene.snapshot.inputs:
        if state.verdict == "input" and state.wait_seconds >= LEAST_SECONDS:
            yield Case(
                key=f"{NAME} {state.name}", subject=state.name, count=state.batches, seconds=state.wait_seconds,
                summary=f"Input `{state.name}`: {state.summary}", advice=_ADVICE,
                data={
                    "input": state.name,
                    "share": state.share,
                    "mean_wait_seconds": state.mean_wait_seconds,
                    "mean_interval_seconds": state.mean_interval_seconds,
                },
            )  # fmt: skip
    part = None if scene.snapshot.inputs else parts.large(scene.snapshot, "input_wait")
    if part is not None:
        yield Case(
            key=NAME, function=part.loop.name,
            severity="warning" if part.is_half and part.loop.carries and not part.line.paces else "info",
            summary=(
                f"The loop of `{part.loop.name}` waits {part.share}, above all at {part.line.line}. The loop computes "
                "nothing meanwhile."
            ),
            advice=_advice(part), where=part.line.line, seconds=part.seconds, data={"loop": part.loop.name},
        )  # fmt: skip


def _advice(part: parts.LargePart) -> str:
    usual, steps = part.loop.p50_seconds, part.line.steps
    if part.line.paces or part.line.locks:
        return _PAUSES if part.line.paces else _LOCKS
    is_seldom = usual is not None and part.seconds > steps * max(SELDOM_SECONDS, SELDOM_TIMES * usual) > 0.0
    if is_seldom:
        return _SELDOM
    return _RUNS if part.line.runs else _WAITS
