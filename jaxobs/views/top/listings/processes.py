"""The list of processes of this machine that can be watched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jaxobs.views.terminal import Overview, Surface
from jaxobs.views.terminal.lines import Line, heading, plain, row
from jaxobs.views.terminal.text import end, safe
from jaxobs.views.top.listing import Field, Grid, Listing, Order, fitted


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
    programs, urls = [len(each.program) for each in items], [len(each.url) for each in items]
    columns = fitted(
        [
            Field("program", 14, 0, most=max(programs, default=0)),
            Field("pid", 8, 1, right=True),
            Field("address", min(max(urls, default=8), 24), 2, most=max(urls, default=0)),
            Field("", 8, 3),
        ],
        surface,
        column,
    )
    shown = view.connection.url

    def line(each: Process) -> Line:
        here = each.url.rstrip("/") == shown.rstrip("/")
        cells = {
            "program": plain(end(safe(each.program, surface.encoding), columns[0].width, surface.glyphs.ellipsis)),
            "pid": plain(str(each.pid)),
            "address": plain(each.url, "dim"),
            "": plain("shown" if here else "", "good"),
        }
        return row(columns, [cells[each.title] for each in columns])

    return heading(columns, ordered_by=column), line
