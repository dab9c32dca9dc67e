"""The list of processes of this machine that can be watched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jaxobs.views.terminal import Overview, Surface
from jaxobs.views.terminal.lines import Line, plain
from jaxobs.views.top.listing import Field, Grid, Listing, Order, fields_grid


@dataclass(frozen=True, slots=True)
class Process:
    """A process that serves an endpoint."""

    url: str
    pid: int
    program: str


def processes(running: Callable[[], Sequence[Process]]) -> Listing[Process]:
    """The list of those that `running` returns."""
    return Listing(
        title="Processes",
        empty="No process on this machine serves an endpoint.",
        items=lambda view: running(),
        key=lambda each: each.url,
        words=lambda each: f"{each.program} {each.pid} {each.url}",
        orders=(
            Order("address", lambda view: lambda each: (len(each.url), each.url), "address"),
            Order("program", lambda view: lambda each: (each.program, each.pid), "program"),
            Order("pid", lambda view: lambda each: each.pid, "pid"),
        ),
        grid=_grid,
        details=lambda view, each, surface: [],
        enter="watch it",
    )


def _grid(view: Overview, items: Sequence[Process], surface: Surface, column: str) -> Grid[Process]:
    longest = max((len(each.url) for each in items), default=0)
    fields = [
        Field("program", 14, 0, most=max((len(each.program) for each in items), default=0)),
        Field("pid", 8, 1, right=True),
        Field("address", min(longest or 8, 24), 2, most=longest),
        Field("", 8, 3),
    ]

    def cells(each: Process, widths: Mapping[str, int]) -> dict[str, Line]:
        here = each.url.rstrip("/") == view.connection.url.rstrip("/")
        return {
            "program": plain(surface.cut_end(each.program, widths["program"])),
            "pid": plain(str(each.pid)),
            "address": plain(each.url, "dim"),
            "": plain("shown" if here else "", "good"),
        }

    return fields_grid(fields, surface, column, cells)
