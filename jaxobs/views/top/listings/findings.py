"""The list of findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxobs.facts.findings import Finding
from jaxobs.views.terminal import Overview, Surface
from jaxobs.views.terminal.findings import about, counted, kind, placed, when
from jaxobs.views.terminal.lines import Line, plain
from jaxobs.views.terminal.text import duration, number, size
from jaxobs.views.terminal.verdict import STYLES
from jaxobs.views.top import details
from jaxobs.views.top.listing import Field, Grid, Listing, Order, fields_grid

_MOST_NAME = 40


def _words(each: Finding) -> str:
    return f"{kind(each)} {each.finding} {about(each)} {each.where or ''} {each.severity} {each.summary} {each.advice}"


def _grid(view: Overview, items: Sequence[Finding], surface: Surface, column: str) -> Grid[Finding]:
    entries = () if view.snapshot.verdict is None else view.snapshot.verdict.findings
    severities = {each.id: each.severity for each in entries}
    fields = [
        Field("finding", max((len(kind(each)) for each in items), default=7), 0),
        Field("function", 12, 1, most=min(max((len(about(each)) for each in items), default=0), _MOST_NAME)),
        Field("count", 13, 4, right=True),
        Field("seconds", 8, 2, right=True),
        Field("memory", 8, 5, right=True),
        Field("since", 14, 3),
        Field("what", 30, 6, most=max((len(each.summary) for each in items), default=0)),
    ]
    if not any(each.bytes for each in items):
        fields = [each for each in fields if each.title != "memory"]

    def cells(each: Finding, widths: Mapping[str, int]) -> dict[str, Line]:
        style = "dim" if each.ended is not None else STYLES[severities.get(each.id, each.severity)]
        return {
            "finding": plain(surface.cut_end(kind(each), widths["finding"]), style),
            "function": plain(surface.cut(about(each), widths.get("function", 0)), "name"),
            "count": plain(counted(each) or (number(each.count) if each.count else "")),
            "seconds": plain(duration(each.seconds) if each.seconds else "", "number"),
            "memory": plain(size(each.bytes) if each.bytes else "", "number"),
            "since": plain(when(each), "dim"),
            "what": plain(surface.cut_end(each.summary, widths.get("what", 0))),
        }

    return fields_grid(fields, surface, column, cells)


FINDINGS: Listing[Finding] = Listing(
    title="Findings",
    empty="There are no findings.",
    items=lambda view: view.snapshot.findings,
    key=lambda each: each.id,
    words=_words,
    orders=(
        Order("severity", lambda view: placed(view.snapshot.verdict)),
        Order("seconds", lambda view: lambda each: (-each.seconds, each.id), "seconds"),
        Order("count", lambda view: lambda each: (-each.count, each.id), "count"),
        Order("time", lambda view: lambda each: (-each.since, each.id), "since"),
        Order("function", lambda view: lambda each: (about(each), each.id), "function"),
    ),
    grid=_grid,
    details=details.finding,
)
