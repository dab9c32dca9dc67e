"""What the texts of a profile share."""

from __future__ import annotations

from collections.abc import Iterator

from jaxobs.views.terminal.lines import Line, Surface, wrapped
from jaxobs.views.terminal.text import middle, safe

_ALL = 1_000


def cut(text: str, width: int, surface: Surface) -> str:
    """A text in so many cells, without its middle where it is longer."""
    return middle(safe(text, surface.encoding), width, surface.glyphs.ellipsis)


def sentence(text: str, surface: Surface, indent: str, style: str) -> Iterator[Line]:
    """A text in as many lines as it takes."""
    parts = wrapped(safe(text, surface.encoding), surface.width - len(indent), _ALL, surface.glyphs)
    return ([(indent, ""), (part, style)] for part in parts)
