"""A process that is alive but makes no steps any more."""

from collections.abc import Iterator

from jaxobs.findings.cases import Case
from jaxobs.findings.fleet.support.view import View, goes_on, named, seconds

NAME = "stuck"
NEEDS = View
STEADY = 1
MOST_SHOWN = 6


def find(view: View) -> Iterator[Case]:
    """A case for this process, and on process 0 one for each that is silent."""
    if view.stuck_after is not None and view.own.idle >= view.stuck_after and not (view.own.found and _rests(view)):
        yield _stuck(view)
    for process, silence in sorted(view.silent.items()):
        yield _silent(view, process, silence)


def _rests(view: View) -> bool:
    """Returns whether the process may be at rest: nobody declared its calls as steps, and it has no more to make."""
    others = [each for each in view.others.values() if each.loop == view.own.loop]
    going = [each for each in others if goes_on(each, view)]
    if view.own.inside:
        return bool(going) or not others
    return not going and not any(each.inside for each in others)


def _stuck(view: View) -> Case:
    own = view.own
    usual = "" if own.usual is None else f", where a step typically takes {seconds(own.usual)}"
    place = f" Its main thread is at {own.at}{', inside JAX' if own.inside else ''}." if own.at else ""
    blamed, blame = _blame(view)
    shown = [f"{name}: {' > '.join(lines[-3:])}" for name, lines in view.threads.items() if lines][:MOST_SHOWN]
    return Case(
        function=own.loop,
        subject=f"process {own.process}",
        summary=f"Process {own.process} on {own.host} is alive, but has not made a step after step {own.steps:,} for "
        f"{seconds(own.idle)}{usual}.{place}{blame}",
        advice=(
            "Check where its threads are. Inside JAX, it waits for a device or for a process that is not in the same "
            "collective; elsewhere, it is what the others wait for. A job that hangs in a collective does not end on "
            "SIGTERM: end it with SIGKILL, and restart."
        ),
        evidence=(*shown, f"All stacks: {view.report}" if view.report else ""),
        count=own.steps,
        data={
            "process": own.process, "host": own.host, "steps": own.steps, "idle_seconds": own.idle,
            "step_seconds": own.usual, "inside_jax": own.inside, "waits_for": blamed[:64], "report": view.report,
        },
    )  # fmt: skip


def _blame(view: View) -> tuple[list[int], str]:
    """Returns who holds this process up: those with fewer steps, else those that are not seen in JAX while it is."""
    own, others = view.own, [each for each in view.others.values() if each.loop == view.own.loop]
    behind = sorted(each.process for each in others if each.steps < own.steps)
    if behind:
        return behind, f" {named(behind)} made fewer steps: check there first."
    outside = sorted((each for each in others if not each.inside and each.at), key=lambda each: each.process)
    if own.inside and outside:
        first, more = outside[0], len(outside) - 1
        also = f" (and {more} more {'are' if more > 1 else 'is'} elsewhere)" if more else ""
        told = f" Process {first.process} on {first.host} is elsewhere, at {first.at}{also}: check there first."
        return [each.process for each in outside], told
    return [], ""


def _silent(view: View, process: int, silence: float) -> Case:
    digest = view.others.get(process)
    host = f" on {digest.host}, pid {digest.pid}," if digest is not None else ""
    steps = f" Its last known step was {digest.steps:,}." if digest is not None else ""
    return Case(
        function=digest.loop if digest is not None else view.own.loop,
        subject=f"process {process}",
        count=1,
        summary=f"Process {process}{host} has not reported for {seconds(silence)}.{steps}",
        advice="It may be gone, stopped, or blocked by code that does not release Python's interpreter lock. On that "
        "host, check `py-spy dump --pid`, the kernel's log for an out-of-memory kill, and the network.",
        data={"process": process, "silent_seconds": silence},
    )
