"""Loops of steps, a line each: how fast they go, and what part of the device they use."""

from __future__ import annotations

from collections.abc import Sequence

from jaxobs.facts.loops import LoopState
from jaxobs.views.terminal.lines import Line, Surface, joined, plain
from jaxobs.views.terminal.text import duration, end, number, safe

_MOST_NAME = 40


def loops(states: Sequence[LoopState], surface: Surface, most: int | None) -> list[Line]:
    """A line for each loop, those that went on last first; at most `most`."""
    ordered = sorted(states, key=lambda each: -(each.ended or 0.0))
    return [_line(each, surface) for each in ordered[:most]]


def _line(state: LoopState, surface: Surface) -> Line:
    name = end(safe(state.name, surface.encoding), min(_MOST_NAME, max(surface.width // 3, 8)), surface.glyphs.ellipsis)
    times = (
        f"p50 {duration(state.p50_seconds)}, p99 {duration(state.p99_seconds)}"
        if state.p50_seconds is not None
        else "" if state.mean_seconds is None else f"mean {duration(state.mean_seconds)}"
    )  # fmt: skip
    figures = [
        f"{number(state.steps)} steps" if state.steps_counted else "",
        "" if state.steps_per_second is None else f"{state.steps_per_second:.3g} per second",
        times,
        "" if state.items_per_second is None else f"{number(state.items_per_second)} items per second",
        _mfu(state),
        f"{number(state.slow)} slow" if state.slow else "",
        f"{number(state.failed)} failed" if state.failed else "",
        "found" if state.found else "",
    ]
    told = joined(figures, surface.glyphs.separator, surface.width - len(name) - 4)
    return [(f" {name}", "program"), *plain(f"  {told}")]


def _mfu(state: LoopState) -> str:
    if state.mfu is not None:
        return f"MFU {100 * state.mfu:.3g} %"
    if state.mfu_range is None:
        return ""
    least, most = state.mfu_range
    return f"MFU {100 * least:.2g} to {100 * most:.2g} %"
