"""Building blocks of details: paragraphs, labelled facts, and headings."""

from collections.abc import Iterable, Sequence

from jaxobs.views.terminal import Surface
from jaxobs.views.terminal.lines import Line, plain, sentence

_LABEL = 14
_NARROW = 60
"""Columns below which a label is above its text."""


def text(said: str, surface: Surface, style: str = "sentence") -> list[Line]:
    """A paragraph, whole."""
    return sentence(said, surface, style)


def facts(pairs: Iterable[tuple[str, str]], surface: Surface, label_cells: int = _LABEL) -> list[Line]:
    """A label and its text for each pair that has one; the text is whole, however many lines it takes."""
    lines: list[Line] = []
    for label, said in pairs:
        if not said.strip():
            continue
        if surface.width < _NARROW:
            lines += [plain(f" {label}", "label"), *sentence(said, surface, indent=3)]
        else:
            first = plain(f" {label:<{label_cells}} ", "label")
            lines += sentence(said, surface, "", label_cells + 2, first)
    return lines


def bullets(sentences: Iterable[str], surface: Surface) -> list[Line]:
    """Each sentence, whole, behind a sign."""
    lines: list[Line] = []
    for each in sentences:
        lines += sentence(each, surface, "", 3, plain(f" {surface.glyphs.separator} "))
    return lines


def part(title: str, lines: Sequence[Line]) -> list[Line]:
    """The lines below a title and an empty line; nothing where there are none."""
    return [[], plain(f" {title}", "title"), *lines] if lines else []
