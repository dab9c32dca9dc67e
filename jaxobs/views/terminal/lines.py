"""Lines of styled pieces: what a view is made of before any terminal library sees it.

A piece is a text and the name of its style, a line is a list of pieces. The names of the styles and their
colours are in `jaxobs.views.terminal.screen`.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from jaxobs.views.terminal.text import UNICODE, Glyphs

Piece = tuple[str, str]
Line = list[Piece]

GAP = 2
"""Cells between two columns."""


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


def section(title: str, summary: str, width: int, glyphs: Glyphs) -> Line:
    """The line that opens a section: its title, a rule, and a summary on the right."""
    room = width - cells(title) - 3
    summary = f" {summary}" if summary and cells(summary) + 4 <= room else ""
    return [(f" {title} ", "title"), (glyphs.rule * (room - cells(summary)), "rule"), (summary, "summary")]


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


def paragraph(text: str, style: str, surface: Surface, first: Line | None = None, indent: int = 1) -> list[Line]:
    """The whole text, however many lines it takes, below and next to `first`, which is `indent` cells wide."""
    parts = wrapped(text, surface.width - indent - 1, 1_000, surface.glyphs)
    start = first if first is not None else plain(" " * indent)
    return [[*(start if not number else plain(" " * indent)), (part, style)] for number, part in enumerate(parts)]


def as_text(lines: Sequence[Line]) -> str:
    """The lines without styles and without blanks at their ends."""
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)
