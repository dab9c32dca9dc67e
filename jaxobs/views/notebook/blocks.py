"""Parts of an output before it is HTML or text: sentences, a bar, tables, and parts that are folded away."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Places = Callable[[str], str]
"""Rewrites the call sites in a text: those in a notebook's cells have file names that mean nothing to a reader."""


def as_they_are(text: str) -> str:
    """No call site is rewritten."""
    return text


@dataclass(frozen=True, slots=True)
class Say:
    """A sentence or two. What is in backticks is code."""

    text: str
    badge: str = ""
    """A word in front of it: `fix`, `warning`."""
    tone: str = ""
    """`bad`, `warn` or `good` colors the badge; `quiet` marks a secondary sentence."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of what follows."""

    text: str


@dataclass(frozen=True, slots=True)
class Bar:
    """Parts of a whole, such as seconds by category, with a legend."""

    label: str
    parts: Sequence[tuple[str, float, str]]
    """Name, value, and the value as text."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table, and sentences below it."""

    cells: Sequence[str]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below titles; a title that begins with `>` stands for a column of figures."""

    titles: Sequence[str]
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Folded:
    """Part for some readers: one click away in HTML, left out of the text."""

    summary: str
    blocks: Sequence[Block]


Block = Say | Heading | Bar | Table | Folded

TONES: Mapping[str, str] = {
    "fix": "bad", "watch": "warn", "ok": "good", "critical": "bad", "warning": "warn", "info": "quiet",
}  # fmt: skip
"""By verdict and by severity."""
