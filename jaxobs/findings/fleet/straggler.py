"""A process that is slower than the others, or that the others wait for."""

from collections import Counter
from collections.abc import Iterator, Mapping

from jaxobs.findings.cases import Case
from jaxobs.findings.fleet.support.digest import Digest
from jaxobs.findings.fleet.support.view import View, goes_on, median, seconds

NAME = "straggler"
NEEDS = View
SLOWER = 1.25
"""Step times of healthy hosts differ by a few percent; a tenth is common with shared networks."""
LEAST_SECONDS = 0.010
"""Below, the step times of small programs differ by chance."""
FEWEST_LOOKS = 12
"""At the counts: over fewer, a step time may be a quarter off by where the looks fell."""
LEAST_WAITING = 0.7
"""Share of looks inside JAX from which on others wait: for the device, or in a collective for the last to arrive."""
FAR = 0.5
"""Difference of shares that counts if the others are inside JAX only half of the time."""
STEADY = 3
"""Views in a row in which it has to be so: one long pause on a host does not count."""
MOST_CASES = 8


def find(view: View) -> Iterator[Case]:
    """A case for each straggler, on process 0, which knows all."""
    if view.own.process:
        return
    running = {each.process: each for each in view.all.values() if _runs(each, view)}
    loops = Counter(each.loop for each in running.values())
    for loop, count in loops.most_common():
        if count > 1:
            yield from _among({process: each for process, each in running.items() if each.loop == loop})


def _among(running: Mapping[int, Digest]) -> Iterator[Case]:
    """Yields cases among processes that run the same loop: the step times of two loops say nothing about each other."""
    paces = {process: each.usual for process, each in running.items() if each.usual is not None}
    usual = median(list(paces.values()))
    slow = [p for p, pace in paces.items() if _slower(pace, usual)]
    # Process 0 pauses, to evaluate and save, and where collectives keep all in step the others wait for it meanwhile.
    slow = [each for each in slow if not _only_pauses(each, running)]
    if slow:
        for process in sorted(slow, key=lambda p: -paces[p])[:MOST_CASES]:
            yield _slow(running[process], paces[process], usual, len(paces))
    else:
        yield from _waited_for(running, usual)


def _slower(pace: float, usual: float) -> bool:
    return pace > usual * SLOWER and pace - usual > LEAST_SECONDS


def _only_pauses(slow: int, running: Mapping[int, Digest]) -> bool:
    """Whether a process is as fast as the others but for pauses that are process 0's: its own, or waits for them."""
    own, others = running[slow], [each for process, each in running.items() if process != slow]
    known = [each.typical for each in others if each.typical is not None]
    if own.typical is None or not known or (slow and not _waits_for(running.get(0), own)):
        return False
    typical = median(known)
    # Where the others' mean lies far above their median, all run ahead of the device: a median tells nothing.
    ahead = _slower(median([each.usual for each in others if each.usual is not None]), typical)
    return not ahead and not _slower(own.typical, typical)


def _waits_for(first: Digest | None, own: Digest) -> bool:
    """Returns whether a process is inside JAX for as long as its pauses last, and process 0 is not."""
    if first is None or first.waiting is None or own.waiting is None or not own.usual or own.typical is None:
        return False
    return own.waiting - first.waiting >= (1 - own.typical / own.usual) / 2


def _runs(digest: Digest, view: View) -> bool:
    """Returns whether a process makes steps: a stopped process is not a straggler, nor are those that wait for it."""
    return (
        digest.usual is not None
        and digest.looks >= FEWEST_LOOKS
        and digest.process not in view.silent
        and goes_on(digest, view)
    )


def _slow(digest: Digest, pace: float, usual: float, count: int) -> Case:
    return Case(
        function=digest.loop,
        subject=f"process {digest.process}",
        summary=(
            f"Process {digest.process} on {digest.host} takes {seconds(pace)} per step, {pace / usual - 1:.0%} more "
            f"than the median of {count} processes ({seconds(usual)}).{_where(digest)}"
        ),
        advice="Check that host for another program, a throttled or faulty device (`accelerator_*` metrics), a slower "
        "disk or network, or more than its share of the input work.",
        count=digest.steps,
        data={"process": digest.process, "host": digest.host, "step_seconds": pace, "median_seconds": usual},
    )


def _waited_for(running: Mapping[int, Digest], usual: float) -> Iterator[Case]:
    """Collectives keep all in step: the slow one is the one that does not wait."""
    all_looks = {process: each.waiting for process, each in running.items() if each.waiting is not None}
    in_steps = {p: running[p].waiting_in_steps for p in all_looks}
    for process in sorted(all_looks, key=lambda p: all_looks[p])[:MOST_CASES]:
        # Process 0 evaluates and saves for all, in pauses for which the others wait.
        shares = all_looks if process else {p: all_looks[p] if s is None else s for p, s in in_steps.items()}
        if len(shares) < 2:
            return
        share, ordered = shares[process], sorted(shares.values())
        others = ordered[len(ordered) // 2] if len(ordered) > 2 else ordered[-1]
        if others - share >= FAR or (others >= LEAST_WAITING and share < others / 2):
            digest = running[process]
            yield Case(
                function=digest.loop,
                subject=f"process {process}",
                summary=f"The others wait for process {process} on {digest.host}: all take {seconds(usual)} per step, "
                f"but its main thread was inside JAX in {share:.0%} of the last samples, and that of the median "
                f"process in {others:.0%}.{_where(digest)}",
                advice=(
                    "What that process does between its steps delays all others: input, logging, checkpoints, garbage "
                    "collection, or too few CPU cores on that host."
                ),
                count=digest.steps,
                data={
                    "process": process, "host": digest.host, "step_seconds": usual,
                    "waiting_share": share, "median_waiting_share": others,
                },
            )  # fmt: skip


def _where(digest: Digest) -> str:
    return f" Its main thread was mostly at {digest.line}." if digest.line else ""
