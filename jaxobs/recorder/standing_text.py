"""How a program stood, as lines of a text report: its steps, where its time went, its input, its watched values.

Facts in, text out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxobs.facts.inputs import InputState
from jaxobs.facts.loops import LoopState
from jaxobs.facts.numbers import WatchedState
from jaxobs.facts.wall import TimeState
from jaxobs.recorder.report_text import wrapped

MOST_INPUTS = 8
MOST_WATCHED = 12


def loop_lines(loops: Sequence[LoopState], now: float) -> Iterator[str]:
    """A line for each loop, the one that continued last first."""
    for each in sorted(loops, key=lambda loop: -(loop.ended or 0.0)):
        typical = each.mean_seconds if each.p50_seconds is None else each.p50_seconds
        told = [
            f"{each.steps:,} steps",
            "" if typical is None else f"{typical:.3g} s each",
            "" if each.p99_seconds is None else f"p99 {each.p99_seconds:.3g} s",
            "" if each.items_per_second is None else f"{_number(each.items_per_second)} items per second",
            f"{each.slow:,} slow" if each.slow else "",
            f"{each.failed:,} failed" if each.failed else "",
            "" if each.ended is None else f"the last one {max(0.0, now - each.ended):.1f} s before",
        ]
        yield f"{each.name}: {', '.join(filter(None, told))}"


def time_lines(time: TimeState | None) -> Iterator[str]:
    """Seconds by category, the most first, of this process; and of its run, where it is one of several attempts."""
    if time is None or time.wall_seconds <= 0:
        return
    most = sorted(time.seconds.items(), key=lambda each: -each[1])
    parts = [f"{name} {value:.1f} s ({value / time.wall_seconds:.0%})" for name, value in most if value >= 0.05]
    goodput = "" if time.goodput is None else f"goodput {time.goodput:.0%}: "
    yield from wrapped(f"{goodput}{', '.join(parts)}; at last {time.category}", "- ")
    run = time.run
    if run is not None:
        lost = f"{run.unsaved_steps:,} steps ({run.unsaved_seconds:.1f} s) since the last checkpoint"
        whole = "" if run.goodput is None else f", goodput {run.goodput:.0%}"
        yield from wrapped(f"run {run.id}, attempt {run.attempt}{whole}, {lost}", "- ")


def input_lines(inputs: Sequence[InputState]) -> Iterator[str]:
    """Yields who holds the loop up, for each input: those waited for most first."""
    order = sorted(inputs, key=lambda each: -each.wait_seconds)
    for each in order[:MOST_INPUTS]:
        yield from wrapped(
            f"{each.name}: {each.batches:,} batches, {each.wait_seconds:.1f} s waited. {each.summary}", "- "
        )


def watched_lines(watched: Sequence[WatchedState]) -> Iterator[str]:
    """What was not finite, then how many others were."""
    bad = [each for each in watched if each.nonfinite]
    for each in bad[:MOST_WATCHED]:
        since = "" if each.step is None else f", first at call {each.step:,}"
        now = "finite again" if each.finite else "not finite"
        yield f"{each.name}: {now}{since}, {each.nonfinite:,} of {each.checked:,} values"
    if len(bad) > MOST_WATCHED:
        yield f"({len(bad) - MOST_WATCHED:,} more that were not finite)"
    fine = [each.name for each in watched if not each.nonfinite and each.checked]
    if fine:
        yield from wrapped(f"finite: {', '.join(fine)}", "")


def _number(value: float) -> str:
    """Three digits, and all of them before the point."""
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.3g}"
