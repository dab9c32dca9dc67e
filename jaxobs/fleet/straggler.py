"""A process that is slower than the others, or that the others wait for."""

from __future__ import annotations

from collections.abc import Iterator

from jaxobs.fleet.digest import Digest
from jaxobs.fleet.view import Case, View, median, seconds

NAME = "straggler"
ABOUT = "One process takes longer for its steps than the others, or the others wait for it."
TOLD_WHEN = (
    "Its usual step time is a quarter above the median of all processes and 10 ms more; or, where collectives keep all "
    "in step, its main thread was inside JAX in fewer than half as many of the last 20 looks as the median process."
)
SLOWER = 1.25
"""Step times of healthy hosts differ by a few percent; a tenth is common with shared networks."""
LEAST_SECONDS = 0.010
"""Below, the step times of small programs differ by chance."""
FEWEST_LOOKS = 12
"""At the counts: over fewer, a step time may be a quarter off by where the looks fell."""
LEAST_WAITING = 0.7
"""Where the others are mostly in JAX, they wait: for the device, or in a collective for the last to arrive."""
STEADY = 3
"""Views in a row in which it has to be so: one long pause on a host is none of our concern."""
REST_STEPS, REST_VIEWS = 5, 2
MOST_CASES = 8


def find(view: View) -> Iterator[Case]:
    """A case for each straggler, on process 0, which knows all."""
    if view.own.process:
        return
    running = {each.process: each for each in view.all.values() if _runs(each, view)}
    paces = {process: each.usual for process, each in running.items() if each.usual is not None}
    if len(paces) < 2:
        return
    usual = median(list(paces.values()))
    slow = [p for p, pace in paces.items() if pace > usual * SLOWER and pace - usual > LEAST_SECONDS]
    if slow:
        for process in sorted(slow, key=lambda p: -paces[p])[:MOST_CASES]:
            yield _slow(running[process], paces[process], usual, len(paces))
    else:
        yield from _waited_for(running, usual)


def _runs(digest: Digest, view: View) -> bool:
    """Whether it makes steps: one that has stopped is no straggler, nor are those that wait for it."""
    return (
        digest.usual is not None
        and digest.looks >= FEWEST_LOOKS
        and digest.process not in view.silent
        and digest.idle <= (REST_STEPS * digest.usual + REST_VIEWS * view.interval)
    )


def _slow(digest: Digest, pace: float, usual: float, count: int) -> Case:
    return Case(
        function=digest.loop,
        subject=f"process {digest.process}",
        summary=f"Process {digest.process} on {digest.host} takes {seconds(pace)} a step; the median of {count} "
        f"processes is {seconds(usual)}: {pace / usual - 1:.0%} more.{_where(digest)}",
        advice="Look at that host: another program on it, a throttled or faulty device (`accelerator_*` metrics), a "
        "slower disk or network, or more input work than its share.",
        count=digest.steps,
        data={"process": digest.process, "host": digest.host, "step_seconds": pace, "median_seconds": usual},
    )


def _waited_for(running: dict[int, Digest], usual: float) -> Iterator[Case]:
    """Collectives keep all in step: the slow one is the one that does not wait."""
    shares = {process: each.waiting for process, each in running.items() if each.waiting is not None}
    if len(shares) < 2:
        return
    ordered = sorted(shares.values())
    others = ordered[len(ordered) // 2] if len(ordered) > 2 else ordered[-1]
    if others < LEAST_WAITING:
        return
    for process, share in sorted(shares.items(), key=lambda each: each[1])[:MOST_CASES]:
        if share < others / 2:
            digest = running[process]
            yield Case(
                function=digest.loop,
                subject=f"process {process}",
                summary=f"The others wait for process {process} on {digest.host}: all take {seconds(usual)} a step, "
                f"but its main thread was inside JAX at {share:.0%} of the last looks and the median process at "
                f"{others:.0%}.{_where(digest)}",
                advice="What that process does between its steps holds up all: input, logging, checkpoints, garbage "
                "collection, or too few CPU cores on that host.",
                count=digest.steps,
                data={
                    "process": process, "host": digest.host, "step_seconds": usual,
                    "waiting_share": share, "median_waiting_share": others,
                },
            )  # fmt: skip


def _where(digest: Digest) -> str:
    return f" Its main thread was mostly at {digest.line}." if digest.line else ""
