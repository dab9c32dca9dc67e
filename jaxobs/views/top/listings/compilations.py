"""The list of recent compilations."""

from __future__ import annotations

from collections.abc import Sequence

from jaxobs.facts.compilations import Compilation
from jaxobs.views.terminal import Overview, Surface
from jaxobs.views.terminal.lines import Line, heading, plain, row
from jaxobs.views.terminal.text import clock, duration, end, middle, safe, short
from jaxobs.views.top import details
from jaxobs.views.top.listing import Field, Grid, Listing, Order, fitted

_MOST_NAME = 60


def _seconds(each: Compilation) -> float:
    return sum(each.phases.values())


def _reason(each: Compilation) -> str:
    return each.reason.removeprefix(f"`{each.function}`: ")


def _words(each: Compilation) -> str:
    return f"{each.function} {each.cause} {each.cache} {each.call_site or ''} {each.reason}"


def _grid(view: Overview, items: Sequence[Compilation], surface: Surface, column: str) -> Grid[Compilation]:
    longest = max((len(short(each.function)) for each in items), default=0)
    told = max((len(_reason(each)) for each in items), default=0)
    columns = fitted(
        [
            Field("time", 8, 2),
            Field("function", 14, 0, most=min(longest, _MOST_NAME)),
            Field("cause", 15, 1),
            Field("seconds", 8, 3, right=True),
            Field("cache", 8, 4),
            Field("reason", 24, 5, most=told),
        ],
        surface,
        column,
    )
    titles = [each.title for each in columns]
    widths = {each.title: each.width for each in columns}

    def line(each: Compilation) -> Line:
        quiet = each.eager or each.cause == "first_call"
        name = middle(safe(short(each.function), surface.encoding), widths["function"], surface.glyphs.ellipsis)
        reason = safe(_reason(each), surface.encoding) if "reason" in widths else ""
        cells = {
            "time": plain(clock(each.time), "dim"),
            "function": plain(name, "dim" if each.eager else "name"),
            "cause": plain(each.cause, "dim" if quiet else "cause"),
            "seconds": plain(duration(_seconds(each)), "number"),
            "cache": plain(each.cache, "good" if each.cache == "hit" else "dim"),
            "reason": plain(end(reason, widths.get("reason", 0), surface.glyphs.ellipsis), "dim" if quiet else ""),
        }
        return row(columns, [cells[title] for title in titles])

    return heading(columns, ordered_by=column), line


COMPILATIONS: Listing[Compilation] = Listing(
    title="Compilations",
    empty="Nothing has compiled yet.",
    items=lambda view: view.compilations,
    key=lambda each: str(each.sequence),
    words=_words,
    orders=(
        Order("time", lambda view: lambda each: -each.sequence),
        Order("seconds", lambda view: lambda each: (-_seconds(each), -each.sequence), "seconds"),
        Order("function", lambda view: lambda each: (each.function, -each.sequence), "function"),
        Order("cause", lambda view: lambda each: (each.cause, -each.sequence), "cause"),
    ),
    grid=_grid,
    details=details.compilation,
)
