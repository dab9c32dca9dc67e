"""Served requests, a line for each route: the steady state and the cold starts apart."""

from __future__ import annotations

from collections.abc import Sequence

from jaxobs.facts.requests import Latency, RouteState
from jaxobs.views.terminal.lines import Column, Line, Surface, cells, grid_width, heading, plain, row
from jaxobs.views.terminal.text import duration, middle, number, safe

LEAST_ROUTE = 8


def requests(routes: Sequence[RouteState], surface: Surface, most: int | None) -> list[Line]:
    """The busiest routes first, with a heading; none where nothing is served."""
    if not routes:
        return []
    busiest = sorted(routes, key=lambda each: (-(each.per_second or 0.0), -each.total, each.route))
    shown = busiest if most is None else busiest[: max(most - 1, 1)]
    columns = _columns(shown, surface)
    lines = [heading(columns)]
    for route in shown:
        values = [_value(column.title, route, column.width, surface) for column in columns]
        lines.append(row(columns, values))
    return lines if most is None or most > 1 else lines[1:]


def _columns(routes: Sequence[RouteState], surface: Surface) -> list[Column]:
    """As many as fit beside the route, those that matter most first."""
    columns = [
        Column(title, width, right=True)
        for title, width in (
            ("per s", 7), ("warm p50", 8), ("warm p99", 8), *_generated(routes), ("cold", 6), ("cold p50", 8),
            ("errors", 7), ("waited", 6), ("requests", 10),
        )
    ]  # fmt: skip
    while len(columns) > 1 and grid_width([Column("route", LEAST_ROUTE), *columns]) > surface.width - 1:
        columns.pop()
    longest = max(cells(safe(each.route, surface.encoding)) for each in routes)
    room = surface.width - 1 - grid_width([Column("", 0), *columns])
    return [Column("route", max(LEAST_ROUTE, min(longest, room))), *columns]


def _generated(routes: Sequence[RouteState]) -> list[tuple[str, int]]:
    """The columns of text that is generated; none where none is."""
    if not any(each.output_tokens or each.first_token for each in routes):
        return []
    return [("first p50", 9), ("per token", 9), ("tokens/s", 8)]


def _value(title: str, route: RouteState, width: int, surface: Surface) -> Line:
    dash = plain("-", "dim")

    def counted(count: int, style: str) -> Line:
        return plain(number(count), style if count else "dim")

    def took(latency: Latency | None, which: str) -> Line:
        return dash if latency is None else plain(duration(getattr(latency, which)), "number")

    if title == "route":
        return plain(middle(safe(route.route, surface.encoding), width, surface.glyphs.ellipsis), "name")
    if title == "per s":
        rate = route.per_second
        return dash if rate is None else plain(f"{rate:.1f}" if rate < 9.95 else number(round(rate)), "number")
    if title == "cold":
        return dash if route.count(cold="unknown") == route.total else counted(route.count(cold="true"), "cause")
    tokens = route.output_tokens_per_second
    return {
        "warm p50": lambda: took(route.warm, "p50"),
        "warm p99": lambda: took(route.warm, "p99"),
        "first p50": lambda: took(route.first_token, "p50"),
        "per token": lambda: took(route.output_token, "p50"),
        "tokens/s": lambda: dash if tokens is None else counted(round(tokens), "number"),
        "cold p50": lambda: took(route.cold, "p50"),
        "errors": lambda: counted(route.count(outcome="error"), "bad"),
        "waited": lambda: counted(route.waited, "warn"),
        "requests": lambda: counted(route.total, "number"),
    }[title]()
