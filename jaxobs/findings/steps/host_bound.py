"""`host_bound`: the host holds a loop up for a large part of its time, and the devices are idle meanwhile."""

from collections.abc import Iterator

from jaxobs.facts.loops import LoopState
from jaxobs.facts.snapshot import Snapshot
from jaxobs.facts.wall import HostWork
from jaxobs.findings import parts
from jaxobs.findings.cases import Case, Scene
from jaxobs.recorder.oom_texts import human

NAME = "host_bound"
NEEDS = Scene

LEAST_SHARE = 0.05
"""Share of the time that copying, callbacks or pauses of the garbage collector take at least, and 1 s; ..."""
BYTES_PER_SECOND = 10e9
"""... copying if it is as fast as memory and interconnects allow."""
FEW_CHECKPOINTS = 4
"""Checkpoint operations, or steps after which looks saw a save, that a program may have at its start and end alone."""
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
        "call it less often. Call a library's prediction once for many rows. If it is an evaluation or a checkpoint, "
        "mark it with `jaxobs.phase`.",
    ),
    "checkpoint": (
        "Saving and restoring files or checkpoints",
        "Save every so many minutes. Do not wait for each save: an asynchronous one continues while the devices "
        "compute, so call `wait_until_finished` only at the end. A file that you write yourself can be written in "
        "another thread, and uncompressed.",
    ),
}
"""The parts of the time, how bad they are, and what to do; Python may be all that a program is about."""
_HELD = {
    "callbacks": (
        "Calls of Python by compiled programs",
        "The program waits for what it calls back (`jax.pure_callback`, `io_callback`, `jax.debug.print`): write it in "
        "JAX, call it for many values at once, or not in each step.", 0.5,
    ),
    "pauses": (
        "Pauses of Python's garbage collector",
        "Call `gc.freeze()` after the start. If that is not enough, call `gc.disable()` there, and `gc.collect()` "
        "every so many steps. Keep fewer objects in Python: the collector visits each of them.", 0.2,
    ),
}  # fmt: skip
"""Parts of a step that are in no category of their own, what to do, the share from which on it is a warning."""


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
    held = _held(scene.snapshot)
    for category, (what, advice) in _WHAT.items():
        part = parts.large(scene.snapshot, category)
        is_often = category != "checkpoint" or _saves(scene.snapshot, part) > FEW_CHECKPOINTS
        if part is not None and (category != "idle" or _goes_on(part.loop, scene.time)):
            within = held.pop("callbacks", None) if category == "idle" else None
            told = "" if within is None or within.where == part.line.line else f" {within.summary}"
            yield Case(
                key=f"{NAME} {category}", function=part.loop.name, subject=category, where=part.line.line,
                seconds=part.seconds, advice=advice,
                severity="warning" if category == "transfer" or (part.is_half and is_often) else "info",
                summary=f"{what} takes {part.share}, above all at {part.line.line}. "
                f"The loop computes nothing meanwhile.{told}",
                data={"loop": part.loop.name},
            )  # fmt: skip
    span = next(reversed(parts.spans(scene.snapshot)), None)
    if span is not None and span.rest["idle"] > (1.0 - parts.ACCOUNTED) * span.total:
        held.pop("callbacks", None)  # Python outside of JAX has it, or has it as soon as it is not short
    if held and _goes_on(_most(scene.snapshot), scene.time):
        yield from held.values()


def _saves(snapshot: Snapshot, part: parts.LargePart | None) -> int:
    operations = snapshot.wall.checkpoints.values() if snapshot.wall is not None else ()
    return max(sum(sum(each.counts) for each in operations), 0 if part is None else part.line.steps)


def _held(snapshot: Snapshot) -> dict[str, Case]:
    """Returns cases of callbacks and of pauses that take part of the time; callbacks by looks if not counted."""
    wall, found = snapshot.wall, dict[str, Case]()
    if wall is None or not snapshot.loops:
        return found
    host, span, loop = wall.host or HostWork(), parts.spans(snapshot)[-1], _most(snapshot)
    seen = host.callbacks or [line for each in snapshot.loops for line in each.lines if line.called_back]
    name = f"`{host.callbacks[0].function}` at " if host.callbacks else "at "
    calls = (sum(each.seconds for each in seen), next((name + each.line for each in seen), ""))
    pauses = (host.step_pause_seconds, "" if host.pause_line is None else f"at {host.pause_line}")
    for subject, (seconds, place) in {"callbacks": calls, "pauses": pauses}.items():
        what, advice, most = _HELD[subject]
        # Looks have no seconds of the latest minutes but those of all that is idle.
        share = (host.recent.get(subject) or min(seconds, wall.recent.get("idle", 0.0))) / max(span.total, 1e-9)
        if seconds >= 1.0 and share >= LEAST_SHARE:
            each = parts.account(wall, snapshot.loops).each_step.get(subject)
            told = (f", {each:.3g} in a step" if each else "") + (f", above all {place}" if place else "")
            found[subject] = Case(
                function=loop.name, subject=subject, where=place.rpartition("at ")[2] or None, seconds=seconds,
                severity="warning" if share > most else "info", advice=advice, data={"loop": loop.name},
                summary=f"{what} take {parts.percent(share)} of {span.of}{told}.",
            )  # fmt: skip
    return found


def _most(snapshot: Snapshot) -> LoopState:
    return max(snapshot.loops, key=lambda each: each.steps)


def _goes_on(loop: LoopState, now: float) -> bool:
    """Returns whether a loop continues: what a program does after its training holds no step up."""
    return loop.ended is None or now - loop.ended < max(2.0 * parts.SHORT, 2.0 * (loop.mean_seconds or 0.0))
