"""The findings: what keeps compiling and what to do about it, as many of them and as much of each as there is room."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from jaxobs.facts.findings import Finding
from jaxobs.facts.verdicts import Verdict
from jaxobs.views.terminal.lines import GAP, Column, Line, Surface, plain, row, sentence
from jaxobs.views.terminal.text import clock, duration, number, short

LEVELS = ((3, 3), (2, 2), (1, 1), (0, 1), (0, 0))
"""Lines at most for what was found and for what to do, from everything to the bare heading."""
STYLES = {"critical": "bad", "warning": "warn", "info": "dim"}
"""By severity."""
_WORDS = {"fix": ("bad", "FIX"), "watch": ("warn", "WATCH"), "ok": ("good", "OK")}


def headline(verdict: Verdict, surface: Surface, most: int = 1_000) -> Iterator[Line]:
    """`FIX` and the worst finding, in at most `most` lines."""
    style, word = _WORDS[verdict.verdict]
    indent = len(word) + 3
    parts = surface.wrapped(verdict.headline, indent, most)
    for line, part in enumerate(parts):
        mark = f" {word}  " if not line else " " * indent
        yield [(mark, style), (part, style if verdict.verdict != "ok" else "good")]


def findings(
    found: Sequence[Finding], surface: Surface, most: int | None, verdict: Verdict | None = None
) -> list[Line]:
    """The findings in at most `most` lines: in the order of the verdict, then those that are over."""
    if not found:
        return []
    entries = {each.id: each for each in verdict.findings} if verdict is not None else {}
    order = sorted(found, key=placed(verdict))
    styles = {key: STYLES[entry.severity] for key, entry in entries.items()}
    columns = _columns(order, surface)
    if most is None:
        return [line for each in order for line in _block(each, columns, surface, styles, LEVELS[0])]
    shown = order if len(order) <= most else order[: max(most - 1, 1)]
    told = [_block(each, columns, surface, styles, LEVELS[-1]) for each in shown]
    free = most - len(told) - (len(shown) < len(order))
    # All of them alike as far as the room goes, then the dearest more than the others.
    for level in reversed(LEVELS):
        for position, each in enumerate(shown):
            longer = _block(each, columns, surface, styles, level)
            if 0 <= len(longer) - len(told[position]) <= free:
                free -= len(longer) - len(told[position])
                told[position] = longer
    lines = [line for block in told for line in block]
    left_out = len(order) - len(shown)
    more = [plain(f" {left_out} more finding{'s' * (left_out != 1)}", "dim")] if left_out else []
    return [*lines, *more][:most]


def placed(verdict: Verdict | None) -> Callable[[Finding], tuple[bool, int, float, int, str]]:
    """Returns the sort key of the verdict's order; findings that are over come last."""
    place = {each.id: number for number, each in enumerate(verdict.findings)} if verdict is not None else {}
    return lambda each: (each.ended is not None, place.get(each.id, len(place)), -each.seconds, -each.count, each.id)


def _columns(order: Sequence[Finding], surface: Surface) -> list[Column]:
    longest_kind = max(len(kind(each)) for each in order)
    fixed = [Column("", 12, right=True), Column("", 8, right=True), Column("", 14)]
    while fixed and surface.width - 3 - longest_kind - sum(each.width + GAP for each in fixed) - GAP < 12:
        fixed.pop()
    room = surface.width - 3 - longest_kind - sum(each.width + GAP for each in fixed) - GAP
    longest = max(len(about(each)) for each in order)
    return [Column("", longest_kind), Column("", max(min(longest, room), 4)), *fixed]


def kind(each: Finding) -> str:
    """Returns the type of a finding in words."""
    return each.finding.replace("_", " ")


def when(each: Finding) -> str:
    """Since when the finding lasts; or that it is over, and since when."""
    moment = each.since if each.ended is None else each.ended
    told = clock(moment) if moment else ""
    return "" if not moment else f"since {told}" if each.ended is None else f"over {told}"


def about(each: Finding) -> str:
    """The function; or, where it is about none, its subject."""
    return each.subject if each.function == "<unknown>" and each.subject else short(each.function)


def counted(each: Finding) -> str:
    """How many batches or compilations belong to it."""
    if "input" in each.data:
        return f"{number(each.count)} batches"
    return f"{number(each.count)} compiled" if each.sequences and each.seconds else ""


def _block(
    each: Finding, columns: Sequence[Column], surface: Surface, styles: Mapping[str, str], level: tuple[int, int]
) -> list[Line]:

    style_of_kind = "dim" if each.ended is not None else styles.get(each.id, "warn")
    values: list[Line] = [
        plain(surface.cut_end(kind(each), columns[0].width), style_of_kind),
        plain(surface.cut(about(each), columns[1].width), "name"),
        plain(counted(each)),
        plain(duration(each.seconds) if each.seconds else "", "number"),
        plain(when(each), "dim"),
    ]
    lines: list[Line] = [[(f" {surface.glyphs.marker}", style_of_kind), *row(columns, values[: len(columns)])]]

    for text, style, most in ((each.summary, "sentence", level[0]), (f"Do: {each.advice}", "good", level[1])):
        lines += sentence(text, surface, style, 3, most=most if text != "Do: " else 0)
    return lines
