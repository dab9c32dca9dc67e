"""Goodput and one bar of all seconds, with the meaning of its parts below."""

from __future__ import annotations

from jaxobs.facts.wall import TIME_CATEGORIES, TimeState
from jaxobs.views.terminal.lines import Line, Surface, cells, length, plain
from jaxobs.views.terminal.text import duration, shares

STYLES = {
    "step": "good", "input_wait": "warn", "trace": "trace", "compile": "compile", "cache_load": "cache_load",
    "checkpoint": "busy", "eval": "lower", "transfer": "cause", "redone": "bad",
}  # fmt: skip
LETTERS = {
    "step": "s", "init": "i", "trace": "t", "compile": "c", "cache_load": "h", "input_wait": "w", "checkpoint": "k",
    "eval": "e", "transfer": "x", "idle": ".", "unattributed": "u", "down": "-", "redone": "r",
}  # fmt: skip
"""In a bar without colours; the legend has them too."""
_NAMES = {"redone": "repeated steps", "down": "no process running"}
_MOST_BAR = 72


def parts(time: TimeState) -> dict[str, float]:
    """Seconds by category, of the run over all its attempts where it has an id; steps first, then the most."""
    run = time.run
    if run is None:
        found = {name: time.seconds.get(name, 0.0) for name in TIME_CATEGORIES}
    else:
        found = {name: run.seconds.get(name, 0.0) for name in TIME_CATEGORIES}
        again = min(run.redone_seconds or 0.0, found["step"])
        found |= {"step": found["step"] - again, "redone": again, "down": run.down_seconds}
    order = sorted(found, key=lambda name: (name != "step", -found[name]))
    return {name: found[name] for name in order if found[name] > 0}


def goodput(time: TimeState | None) -> str:
    """`goodput 87 %`; empty before the first step."""
    told = None if time is None else time.goodput if time.run is None else time.run.goodput
    return "" if told is None else f"goodput {told:.0%}".replace("%", " %")


def wall(time: TimeState | None, surface: Surface, most: int | None) -> list[Line]:
    """The bar and its legend; the legend alone where there is room for one line."""
    if time is None or not (found := parts(time)):
        return []
    total = sum(found.values())
    full = surface.glyphs.full if surface.colour else None
    dealt = shares(found, total, min(surface.width - 2, _MOST_BAR))
    bar: Line = [(" ", ""), *(((full or LETTERS[name]) * count, STYLES.get(name, "dim")) for name, count in dealt)]
    legend = _legend(found, total, surface)
    return [legend] if most == 1 else [bar, legend][:most]


def _legend(found: dict[str, float], total: float, surface: Surface) -> Line:
    line: Line = []
    for name, value in found.items():
        letter = "" if surface.colour else f"{LETTERS[name]} "
        told = f"{letter}{_NAMES.get(name, name.replace('_', ' '))} {duration(value)} {value / total:.0%}"
        text = f"{f' {surface.glyphs.separator} ' if line else ' '}{told}"
        if length(line) + cells(text) > surface.width - 1:
            break
        line += plain(text, STYLES.get(name, "dim"))
    return line
