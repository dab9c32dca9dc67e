"""The verdict's headline."""

from __future__ import annotations

from collections.abc import Iterator

from jaxobs.facts.verdicts import Verdict
from jaxobs.views.terminal.lines import Line, Surface

STYLES = {"critical": "bad", "warning": "warn", "info": "dim"}
"""By severity."""
_WORDS = {"fix": ("bad", "FIX"), "watch": ("warn", "WATCH"), "ok": ("good", "OK")}


def headline(verdict: Verdict, surface: Surface, most: int = 1_000) -> Iterator[Line]:
    """`FIX` and the worst finding, in at most `most` lines."""
    style, word = _WORDS[verdict.verdict]
    indent = len(word) + 3
    parts = surface.wrapped(verdict.headline, indent, most)
    for number, part in enumerate(parts):
        mark = f" {word}  " if not number else " " * indent
        yield [(mark, style), (part, style if verdict.verdict != "ok" else "good")]
