"""A process that is alive but makes no steps any more."""

from __future__ import annotations

from collections.abc import Iterator

from jaxobs.fleet.view import Case, View, named, seconds

NAME = "stuck"
ABOUT = "A process is alive but has not finished a step for many times its usual time, or says nothing any more."
TOLD_WHEN = (
    "No step for `stuck_steps` times the usual step time and at least `stuck_seconds` (ten times that where the usual "
    "one is not known yet), while nothing compiles, in a job of several processes or inside a declared step; on "
    "process 0 also for a process that has said nothing for a minute and `stuck_seconds`."
)
STEADY = 1
MOST_SHOWN = 6


def find(view: View) -> Iterator[Case]:
    """A case for this process, and on process 0 one for each that is silent."""
    if view.stuck_after is not None and view.own.idle >= view.stuck_after:
        yield _stuck(view)
    for process, silence in sorted(view.silent.items()):
        yield _silent(view, process, silence)


def _stuck(view: View) -> Case:
    own = view.own
    usual = "" if own.usual is None else f"; usual are {seconds(own.usual)}"
    place = f" Its main thread is at {own.at}{', inside JAX' if own.inside else ''}." if own.at else ""
    blamed, blame = _blame(view)
    shown = [f"{name}: {' > '.join(lines[-3:])}" for name, lines in view.threads.items() if lines][:MOST_SHOWN]
    return Case(
        function=own.loop,
        subject=f"process {own.process}",
        summary=f"Process {own.process} on {own.host} is alive, but has made no step after its {own.steps:,}th for "
        f"{seconds(own.idle)}{usual}.{place}{blame}",
        advice="Look where its threads are. Inside JAX, it waits for a device or for a process that is not in the same "
        "collective; elsewhere, it is what the others wait for. A job that hangs in a collective does not end by "
        "SIGTERM: SIGKILL it, and restart.",
        evidence=(*shown, f"All stacks: {view.report}" if view.report else ""),
        count=own.steps,
        data={
            "process": own.process, "host": own.host, "steps": own.steps, "idle_seconds": own.idle,
            "usual_seconds": own.usual, "inside_jax": own.inside, "waits_for": blamed[:64], "report": view.report,
        },
    )  # fmt: skip


def _blame(view: View) -> tuple[list[int], str]:
    """Who holds this one up: those with fewer steps, else those that are not seen in JAX while it is."""
    own, others = view.own, [each for each in view.others.values() if each.loop == view.own.loop]
    behind = sorted(each.process for each in others if each.steps < own.steps)
    if behind:
        return behind, f" {named(behind)} made fewer steps: look there first."
    outside = sorted((each for each in others if not each.inside and each.at), key=lambda each: each.process)
    if own.inside and outside:
        first, more = outside[0], len(outside) - 1
        also = f" (and {more} more {'are' if more > 1 else 'is'} elsewhere)" if more else ""
        told = f" Process {first.process} on {first.host} is elsewhere, at {first.at}{also}: look there first."
        return [each.process for each in outside], told
    return [], ""


def _silent(view: View, process: int, silence: float) -> Case:
    digest = view.others.get(process)
    host = f" on {digest.host}, pid {digest.pid}," if digest is not None else ""
    steps = f" Its last known step was {digest.steps:,}." if digest is not None else ""
    return Case(
        function=digest.loop if digest is not None else view.own.loop,
        subject=f"process {process}",
        summary=f"Process {process}{host} has said nothing for {seconds(silence)}.{steps}",
        advice="It may be gone, stopped, or held by code that does not let go of Python's interpreter lock. Look at "
        "that host: `py-spy dump --pid`, the kernel's log for an out-of-memory kill, the network.",
        data={"process": process, "silent_seconds": silence},
    )
