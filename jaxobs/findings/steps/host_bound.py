"""`host_bound`: the host holds a loop up for a large part of its time, and the devices are idle meanwhile."""

from collections.abc import Iterator

from jaxobs.facts.loops import LoopState
from jaxobs.findings import parts
from jaxobs.findings.cases import Case, Scene
from jaxobs.recorder.oom_texts import human

NAME = "host_bound"
NEEDS = Scene

LEAST_SHARE = 0.05
"""Share of a step that copying takes at least, ..."""
BYTES_PER_SECOND = 10e9
"""... if it is as fast as memory and interconnects allow."""
FEW_CHECKPOINTS = 4
"""Checkpoint operations that a program may make at its start and its end alone."""
LETS_GO = 12
"""A minute of looks: a share near the bound comes and goes."""

_WHAT = {
    "transfer": (
        "Moving values between the host and the devices",
        "Move them at once: read a whole array by `np.asarray(x)` or several by `jax.device_get`, and not element by "
        "element. Compute on the device what the host needs to decide or to print, and read that every hundredth step.",
    ),
    "idle": (
        "Python outside of JAX",
        "Move this work into the compiled step, or to a thread that prepares the next step while the devices compute. "
        "What the step calls back (`jax.pure_callback`, `jax.debug.print`) holds the devices up: write it in JAX, or "
        "call it less often. Call a library's prediction once for many rows. If it is a checkpoint, save less often, "
        "uncompressed, or in another thread; mark it, or an evaluation, with `jaxobs.phase`.",
    ),
    "checkpoint": (
        "Saving and restoring checkpoints",
        "Save every so many minutes. Do not wait for each save: an asynchronous one continues while the devices "
        "compute, so call `wait_until_finished` only at the end.",
    ),
}
"""The parts of the time, how bad they are, and what to do; Python may be all that a program is about."""


def find(scene: Scene) -> Iterator[Case]:
    """Yields a case for each part of the time that holds a loop up, and for arguments that are copied in each step."""
    for loop in scene.snapshot.loops:
        took = loop.bytes_again / BYTES_PER_SECOND
        if loop.mean_seconds is not None and took > LEAST_SHARE * loop.mean_seconds and took * loop.steps > 1.0:
            yield Case(
                function=loop.name, subject="arguments", severity="warning", count=loop.steps,
                summary=f"Each step of `{loop.name}` is given the same NumPy arrays, {human(loop.bytes_again)}, which "
                f"are copied to the devices each time: at least {took / loop.mean_seconds:.0%} of a step's time.",
                advice="If they do not change, put them on the devices once, before the loop: `x = jax.device_put(x)`.",
                seconds=took * loop.steps, data={"loop": loop.name, "bytes": loop.bytes_again},
            )  # fmt: skip
    for category, (what, advice) in _WHAT.items():
        part = parts.large(scene.snapshot, category)
        operations = scene.snapshot.wall.checkpoints.values() if scene.snapshot.wall is not None else ()
        is_often = category != "checkpoint" or sum(sum(each.counts) for each in operations) > FEW_CHECKPOINTS
        if part is not None and (category != "idle" or _goes_on(part.loop, scene.time)):
            yield Case(
                function=part.loop.name, subject=category, where=part.where, seconds=part.seconds, advice=advice,
                severity="warning" if category == "transfer" or (part.is_half and is_often) else "info",
                summary=f"{what} takes {part.share}, above all at {part.where}. The loop computes nothing meanwhile.",
                data={"loop": part.loop.name},
            )  # fmt: skip


def _goes_on(loop: LoopState, now: float) -> bool:
    """Returns whether a loop continues: what a program does after its training holds no step up."""
    return loop.ended is None or now - loop.ended < max(2.0 * parts.SHORT, 2.0 * (loop.mean_seconds or 0.0))
