"""The latest out-of-memory report: which call, how much it wanted, why, what to do, and where all of it stands."""

from __future__ import annotations

from jaxobs.facts.out_of_memory import OutOfMemory
from jaxobs.views.terminal.lines import Line, Surface, joined, wrapped
from jaxobs.views.terminal.text import clock, safe, short, size


def out_of_memory(event: OutOfMemory | None, surface: Surface, most: int | None) -> list[Line]:
    """In at most `most` lines: the head, the likeliest cause, what to do, the file; nothing where there was none."""
    if event is None:
        return []
    glyphs, encoding = surface.glyphs, surface.encoding
    wanted = "" if event.wanted_bytes is None else f"{size(event.wanted_bytes)} wanted"
    pieces = [
        clock(event.time),
        short(event.function),
        wanted,
        event.device or "",
        event.call_site or "",
    ]
    told = joined([safe(each, encoding) for each in pieces], glyphs.separator, surface.width - 4)
    lines: list[Line] = [[(f" {glyphs.marker} ", "bad"), (told, "bad")]]
    room = None if most is None else max(most - 1, 0)
    path = [] if event.report is None else _sentence(f"Report: {event.report}", surface, "dim", 2)
    for cause in event.causes[:1]:
        # What to do counts most where there is little room, then why it was.
        advice = _sentence(f"Do: {cause.advice}", surface, "good", _share(room, 2))
        room = None if room is None else room - len(advice)
        why = _sentence(f"{cause.summary} [{cause.cause}]", surface, "sentence", _share(room, 1))
        room = None if room is None else room - len(why)
        lines += [*why, *advice]
    return [*lines, *path[:room]]


def _share(room: int | None, parts: int) -> int:
    """Lines for one of the sentences."""
    return 4 if room is None else min(4, -(-room // parts))


def _sentence(text: str, surface: Surface, style: str, most: int) -> list[Line]:
    parts = wrapped(safe(text, surface.encoding), surface.width - 4, most, surface.glyphs) if most else []
    return [[("   ", ""), (part, style)] for part in parts]
