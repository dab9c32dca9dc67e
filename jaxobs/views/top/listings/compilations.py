"""The list of recent compilations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxobs.facts.compilations import Compilation
from jaxobs.views.terminal import Overview, Surface
from jaxobs.views.terminal.lines import Line, plain
from jaxobs.views.terminal.text import clock, duration, short
from jaxobs.views.top import details
from jaxobs.views.top.listing import Field, Grid, Listing, Order, fields_grid

_MOST_NAME = 60


def _seconds(each: Compilation) -> float:
    return sum(each.phases.values())


def _reason(each: Compilation) -> str:
    return each.reason.removeprefix(f"`{each.function}`: ")


def _grid(view: Overview, items: Sequence[Compilation], surface: Surface, column: str) -> Grid[Compilation]:
    longest = max((len(short(each.function)) for each in items), default=0)
    told = max((len(_reason(each)) for each in items), default=0)
    fields = [
        Field("time", 8, 2),
        Field("function", 14, 0, most=min(longest, _MOST_NAME)),
        Field("cause", 15, 1),
        Field("seconds", 8, 3, right=True),
        Field("cache", 8, 4),
        Field("reason", 24, 5, most=told),
    ]

    def cells(each: Compilation, widths: Mapping[str, int]) -> dict[str, Line]:
        quiet = "dim" if each.eager or each.cause == "first_call" else ""
        return {
            "time": plain(clock(each.time), "dim"),
            "function": plain(surface.cut(short(each.function), widths["function"]), "dim" if each.eager else "name"),
            "cause": plain(each.cause, quiet or "cause"),
            "seconds": plain(duration(_seconds(each)), "number"),
            "cache": plain(each.cache, "good" if each.cache == "hit" else "dim"),
            "reason": plain(surface.cut_end(_reason(each), widths.get("reason", 0)), quiet),
        }

    return fields_grid(fields, surface, column, cells)


COMPILATIONS: Listing[Compilation] = Listing(
    title="Compilations",
    empty="Nothing has compiled yet.",
    items=lambda view: view.compilations,
    key=lambda each: str(each.sequence),
    words=lambda each: f"{each.function} {each.cause} {each.cache} {each.call_site or ''} {each.reason}",
    orders=(
        Order("time", lambda view: lambda each: -each.sequence),
        Order("seconds", lambda view: lambda each: (-_seconds(each), -each.sequence), "seconds"),
        Order("function", lambda view: lambda each: (each.function, -each.sequence), "function"),
        Order("cause", lambda view: lambda each: (each.cause, -each.sequence), "cause"),
    ),
    grid=_grid,
    details=details.compilation,
)
