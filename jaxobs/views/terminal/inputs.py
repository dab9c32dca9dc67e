"""Inputs and watched values, a line each: whether the input holds the loop up, and what is not finite."""

from __future__ import annotations

from collections.abc import Sequence

from jaxobs.facts.inputs import InputState
from jaxobs.facts.numbers import WatchedState
from jaxobs.views.terminal.lines import Line, Surface, bounded, cells, plain
from jaxobs.views.terminal.text import duration, number

_VERDICTS = {
    "input": ("input-bound", "warn"),
    "compute": ("input keeps up", "good"),
    "mixed": ("both cost", "number"),
    None: ("not known yet", "dim"),
}


def inputs(states: Sequence[InputState], surface: Surface, most: int | None) -> list[Line]:
    """Lists inputs, those with the longest waits first."""
    ordered = sorted(states, key=lambda each: (-each.wait_seconds, each.name))
    return bounded([_input(each, surface) for each in ordered], most)


def _input(state: InputState, surface: Surface) -> Line:
    name = surface.name(state.name)
    verdict, style = _VERDICTS[state.verdict]
    if 2 * state.elsewhere_batches > state.batches:
        verdict = "on another thread"
    figures = [
        ""
        if state.mean_interval_seconds is None
        else f"waits {duration(state.mean_wait_seconds)} of {duration(state.mean_interval_seconds)} a batch "
        f"({state.share or 0.0:.0%})",
        f"{number(state.batches)} batches",
        f"{duration(state.wait_seconds)} waited",
    ]
    line: Line = [(f" {name}", "program"), *plain(f"  {verdict}", style)]
    taken = sum(cells(text) for text, _ in line)
    told = surface.joined(figures, taken + 4)
    return [*line, *plain(f" {surface.glyphs.separator} {told}" if told else "")]


def watched(states: Sequence[WatchedState], surface: Surface, most: int | None) -> list[Line]:
    """A line for each that was not finite; one for all others."""
    bad = [each for each in states if each.nonfinite]
    lines = [_bad(each, surface) for each in bad]
    fine = [surface.name(each.name) for each in states if not each.nonfinite and each.checked]
    unseen = [surface.name(each.name) for each in states if not each.nonfinite and not each.checked]
    for said, names in (("finite", fine), ("not checked yet", unseen)):
        if names:
            told = surface.joined(names, len(said) + 4)
            lines.append([(f" {said}", "good" if said == "finite" else "dim"), *plain(f"  {told}")])
    return bounded(lines, most)


def _bad(state: WatchedState, surface: Surface) -> Line:
    figures = [
        "not finite" if state.finite is not True else "finite again",
        "" if state.step is None else f"first at call {number(state.step)}",
        f"{number(state.nonfinite)} of {number(state.checked)} values",
    ]
    name = surface.name(state.name)
    told = surface.joined(figures, cells(name) + 4)
    return [(f" {name}", "program"), *plain(f"  {told}", "bad" if state.finite is not True else "warn")]
