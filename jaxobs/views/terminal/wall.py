"""Goodput, one bar of all seconds with the meaning of its parts, and a bar for each line that took many of them."""

from collections.abc import Sequence

from jaxobs.facts.loops import LoopState
from jaxobs.facts.wall import TIME_CATEGORIES, TimeState
from jaxobs.views.terminal.lines import Line, Surface, cells, crop, length, pad, plain
from jaxobs.views.terminal.text import bar, duration, shares, tail

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
_LINE_BAR = 30
BY_LINE = "By line, since the first step"


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
    whole: Line = [(" ", ""), *(((full or LETTERS[name]) * count, STYLES.get(name, "dim")) for name, count in dealt)]
    legend = _legend(found, total, surface)
    return [legend] if most == 1 else [whole, legend][:most]


def host_lines(loops: Sequence[LoopState], surface: Surface, most: int | None) -> list[Line]:
    """A bar for each line of the program that took much of the time since the first step; none if none is known."""
    shown = [each for loop in loops for each in loop.lines][:most]
    names = [surface.safe("/".join(each.line.rsplit("/", 2)[-2:])) for each in shown]
    width = min(max(map(cells, names), default=0), surface.width // 3)
    room = max(0, min(_LINE_BAR, surface.width - width - 33))
    rows = []
    for name, each in zip(names, shown, strict=True):
        style, (full, empty) = STYLES.get(each.category, "dim"), bar(each.share, room, surface.glyphs)
        head = pad(plain(tail(name, width, surface.glyphs.ellipsis), "name"), width)
        figures = f"  {each.share:4.0%} {duration(each.seconds):>8}  "
        told = [(full, style), (empty, "dim"), (figures, "number"), (_name(each.category), style)]
        rows.append(crop([(" ", ""), *head, ("  ", ""), *told], surface.width - 1))
    return rows


def _name(category: str) -> str:
    return _NAMES.get(category, category.replace("_", " "))


def _legend(found: dict[str, float], total: float, surface: Surface) -> Line:
    line: Line = []
    for name, value in found.items():
        letter = "" if surface.colour else f"{LETTERS[name]} "
        told = f"{letter}{_name(name)} {duration(value)} {value / total:.0%}"
        text = f"{f' {surface.glyphs.separator} ' if line else ' '}{told}"
        if length(line) + cells(text) > surface.width - 1:
            break
        line += plain(text, STYLES.get(name, "dim"))
    return line
