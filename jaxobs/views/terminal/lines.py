"""Lines of styled pieces: what a view is made of before any terminal library sees it.

A piece is a text and the name of its style, a line is a list of pieces. The names of the styles and their
colours are in `jaxobs.views.terminal.screen`.
"""

import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from jaxobs.views.terminal.text import UNICODE, Glyphs, end, middle, safe

Piece = tuple[str, str]
Line = list[Piece]

GAP = 2
"""Cells between two columns."""
ALL = 1_000
"""Lines that one sentence may take: no limit in practice."""


@dataclass(frozen=True, slots=True)
class Surface:
    """Surface that lines are drawn on."""

    width: int
    height: int | None = None
    """Rows; None if there is no bottom."""
    glyphs: Glyphs = UNICODE
    encoding: str = "utf-8"
    colour: bool = True
    """Whether colours distinguish things; letters do otherwise."""

    def safe(self, text: str) -> str:
        """Returns a text on one line, without what must not reach the terminal or what it cannot show."""
        return safe(text, self.encoding)

    def cut(self, text: str, width: int) -> str:
        """Returns a safe text in at most `width` cells, without its middle where it is longer."""
        return middle(self.safe(text), width, self.glyphs.ellipsis)

    def cut_end(self, text: str, width: int) -> str:
        """Returns a safe text in at most `width` cells, without its end where it is longer."""
        return end(self.safe(text), width, self.glyphs.ellipsis)

    def name(self, text: str) -> str:
        """Returns a name, made safe, in at most a third of the width."""
        return self.cut(text, min(40, max(self.width // 3, 8)))

    def joined(self, pieces: Iterable[str], less: int) -> str:
        """Returns as many of the pieces, made safe, as fit the width without `less` cells."""
        return joined([self.safe(each) for each in pieces], self.glyphs.separator, self.width - less)

    def wrapped(self, text: str, less: int, most: int = ALL) -> list[str]:
        """Returns a safe text on at most `most` lines of the width without `less` cells."""
        return wrapped(self.safe(text), self.width - less, most, self.glyphs)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a grid: its heading, its width in cells, and the side on which its cells are aligned."""

    title: str
    width: int
    right: bool = False


def plain(text: str, style: str = "") -> Line:
    """A line, or cell, of one piece."""
    return [(text, style)]


def cells(text: str) -> int:
    """How many cells of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text
    )


def length(line: Line) -> int:
    """How many cells the line takes."""
    return sum(cells(text) for text, _ in line)


def crop(line: Line, width: int) -> Line:
    """The first `width` cells of the line."""
    cropped: Line = []
    for text, style in line:
        while text and cells(text) > width:
            text = text[:width] if len(text) > width else text[:-1]
        width -= cells(text)
        cropped.append((text, style))
        if width <= 0:
            break
    return cropped


def pad(line: Line, width: int, *, right: bool = False) -> Line:
    """The line cropped or filled to exactly `width` cells."""
    cropped = crop(line, width)
    fill: Line = [(" " * (width - length(cropped)), "")]
    return fill + cropped if right else cropped + fill


def row(columns: Sequence[Column], values: Sequence[Line], indent: int = 1) -> Line:
    """A row of a grid."""
    line: Line = [(" " * indent, "")]
    for position, (column, value) in enumerate(zip(columns, values, strict=True)):
        line += [(" " * GAP, "")] if position else []
        line += pad(value, column.width, right=column.right)
    return line


def heading(columns: Sequence[Column], indent: int = 1, ordered_by: str = "") -> Line:
    """The row of the columns' titles; that of the column by which the rows are ordered stands out."""
    titles = [(column.title, "ordered" if column.title == ordered_by else "heading") for column in columns]
    return row(columns, [plain(*title) for title in titles], indent)


def grid_width(columns: Sequence[Column]) -> int:
    """The cells that the columns and the gaps between them take."""
    return sum(column.width for column in columns) + GAP * (len(columns) - 1)


def section(title: str, summary: str, surface: Surface) -> Line:
    """The line that opens a section: its title, a rule, and a summary on the right."""
    room = surface.width - cells(title) - 3
    summary = f" {summary}" if summary and cells(summary) + 4 <= room else ""
    return [(f" {title} ", "title"), (surface.glyphs.rule * (room - cells(summary)), "rule"), (summary, "summary")]


def titled(title: str, summary: str, surface: Surface, columns: Sequence[Column] = ()) -> Iterator[Line]:
    """The opening of a section below others: an empty line, its title, and the titles of a table's columns."""
    yield plain("")
    yield section(title, summary, surface)
    if columns:
        yield heading(columns)


def sentence(
    text: str, surface: Surface, style: str = "", indent: int = 1, first: Line | None = None, most: int = ALL
) -> list[Line]:
    """A text in at most `most` lines, below and next to `first`, which is `indent` cells wide."""
    parts, blank = surface.wrapped(text, indent, most) if most else [], plain(" " * indent)
    return [[*(blank if number or first is None else first), (part, style)] for number, part in enumerate(parts)]


def joined(pieces: Sequence[str], separator: str, width: int) -> str:
    """As many of the pieces, from the first, as fit `width` cells; empty ones are left out."""
    text = ""
    for piece in (each for each in pieces if each):
        longer = f"{text} {separator} {piece}" if text else piece
        if cells(longer) > width:
            break
        text = longer
    return text


def wrapped(text: str, width: int, most: int, glyphs: Glyphs) -> list[str]:
    """The text on at most `most` lines of `width` cells, the last one cut with an ellipsis."""
    width = max(width, 8)
    parts = textwrap.wrap(text, width, break_on_hyphens=False)
    if len(parts) <= most:
        return parts
    last = parts[most - 1]
    while last and len(last) + 1 + len(glyphs.ellipsis) > width:
        # Whole words go, unless the line is one word.
        last = last.rpartition(" ")[0] or last[:-1]
    return [*parts[: most - 1], f"{last} {glyphs.ellipsis}"]


def bounded(lines: list[Line], most: int | None) -> list[Line]:
    """At most `most` of the lines, the last of which says how many there are besides."""
    if most is None or len(lines) <= most:
        return lines
    kept = lines[: max(most - 1, 1)]
    return [*kept, plain(f" {len(lines) - len(kept)} more", "dim")][:most]


def as_text(lines: Sequence[Line]) -> str:
    """The lines without styles and without blanks at their ends."""
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)
