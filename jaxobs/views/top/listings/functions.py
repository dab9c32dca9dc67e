"""The list of functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jaxobs.facts.functions import FunctionState
from jaxobs.views.terminal import Overview, Surface
from jaxobs.views.terminal.functions import by_cost, grid, programs
from jaxobs.views.terminal.text import program_bytes, short
from jaxobs.views.top import details
from jaxobs.views.top.listing import Grid, Listing, Order


def _grid(view: Overview, items: Sequence[FunctionState], surface: Surface, column: str) -> Grid[FunctionState]:
    now = view.snapshot.time + view.age
    return grid(items, view.rates, view.compilations, now, surface, column)


def _most(figure: Callable[[FunctionState], float | None]) -> Callable[[Overview], Callable[[FunctionState], object]]:
    """The largest first, then by name; what is not known last."""

    def key(each: FunctionState) -> object:
        value = figure(each)
        return value is None, -(value or 0), each.name

    return lambda view: key


def _by_memory(view: Overview) -> Callable[[FunctionState], object]:
    known = programs(view.snapshot.functions, view.compilations)
    return _most(lambda each: program_bytes(known[each.name].memory) if each.name in known else None)(view)


FUNCTIONS: Listing[FunctionState] = Listing(
    title="Functions",
    empty="Nothing has compiled yet.",
    items=lambda view: view.snapshot.functions,
    key=lambda each: each.name,
    words=lambda each: f"{each.name} {' '.join(each.compilations)} {' '.join(each.errors)} {each.last_reason or ''}",
    orders=(
        Order("seconds", lambda view: by_cost, "seconds"),
        Order("compilations", _most(lambda each: each.compiled), "comp."),
        Order("calls", _most(lambda each: each.calls), "calls"),
        Order("calls per second", lambda view: _most(lambda each: view.rates.get(each.name))(view), "per s"),
        Order("errors", _most(lambda each: sum(each.errors.values())), "errors"),
        Order("slow calls", _most(lambda each: sum(each.fastpath_misses.values())), "slow"),
        Order("memory", _by_memory, "memory"),
        Order("last compiled", _most(lambda each: each.last_compiled), "last"),
        Order("name", lambda view: lambda each: short(each.name), "function"),
    ),
    grid=_grid,
    details=details.function,
)
