"""The persistent compilation cache: what lies on disk, what it saved, and what was not stored and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxobs.facts.cache import CacheState
from jaxobs.facts.compilations import Compilation
from jaxobs.views.terminal.lines import Line, Surface, joined, plain, wrapped
from jaxobs.views.terminal.text import number, safe, size

MOST_REASONS = 3


def cache(state: CacheState, compilations: Sequence[Compilation], surface: Surface) -> list[Line]:
    """A line of figures, and a line for each of the main reasons why programs were not stored; none where it is off."""
    if not state.enabled or not state.directory:
        return []
    grown = state.grown_bytes
    figures = [
        "" if state.entries is None else f"{number(state.entries)} entries",
        "" if state.bytes is None else size(state.bytes),
        "" if not grown else f"{'-' if grown < 0 else '+'}{size(abs(grown))} since first seen",
        f"saved {state.saved_seconds:,.2f} s" if state.saved_seconds else "",
        safe(state.directory, surface.encoding),
    ]
    told = joined(figures, surface.glyphs.separator, surface.width - 2)
    return [*([plain(f" {told}")] if told else []), *_unsaved(state.unsaved, compilations, surface)]


def _unsaved(unsaved: Mapping[str, int], compilations: Sequence[Compilation], surface: Surface) -> list[Line]:
    details = {each.uncached_because: each.uncached_detail for each in compilations if each.uncached_because}
    lines: list[Line] = []
    order = sorted((reason for reason in unsaved if unsaved[reason]), key=lambda reason: -unsaved[reason])
    for reason in order[:MOST_REASONS]:
        detail = details.get(reason)
        text = (
            f"{number(unsaved[reason])} not stored, {reason.replace('_', ' ')}{f'; latest: {detail}' if detail else ''}"
        )
        parts = wrapped(safe(text, surface.encoding), surface.width - 2, 2, surface.glyphs)
        lines += [plain(f" {part}", "dim") for part in parts]
    return lines
