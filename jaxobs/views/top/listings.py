"""The lists of `jaxobs top`: findings, functions, compilations, and the processes of this machine."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jaxobs.facts.compilations import Compilation
from jaxobs.facts.findings import Finding
from jaxobs.facts.functions import FunctionState
from jaxobs.views.terminal import Overview, Surface
from jaxobs.views.terminal.findings import STYLES, about, counted, kind, placed, when
from jaxobs.views.terminal.functions import by_cost, grid, programs
from jaxobs.views.terminal.lines import Line, plain
from jaxobs.views.terminal.text import clock, duration, number, program_bytes, short, size
from jaxobs.views.top import details
from jaxobs.views.top.listing import Field, Grid, Listing, Order, fields_grid

_MOST_FUNCTION = 60
_MOST_SUBJECT = 40


def _finding_words(each: Finding) -> str:
    return f"{kind(each)} {each.finding} {about(each)} {each.where or ''} {each.severity} {each.summary} {each.advice}"


def _findings_grid(view: Overview, items: Sequence[Finding], surface: Surface, column: str) -> Grid[Finding]:
    entries = () if view.snapshot.verdict is None else view.snapshot.verdict.findings
    severities = {each.id: each.severity for each in entries}
    fields = [
        Field("finding", max((len(kind(each)) for each in items), default=7), 0),
        Field("function", 12, 1, most=min(max((len(about(each)) for each in items), default=0), _MOST_SUBJECT)),
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
    words=_finding_words,
    orders=(
        Order("severity", lambda view: placed(view.snapshot.verdict)),
        Order("seconds", lambda view: lambda each: (-each.seconds, each.id), "seconds"),
        Order("count", lambda view: lambda each: (-each.count, each.id), "count"),
        Order("time", lambda view: lambda each: (-each.since, each.id), "since"),
        Order("function", lambda view: lambda each: (about(each), each.id), "function"),
    ),
    grid=_findings_grid,
    details=details.finding,
)


def _functions_grid(
    view: Overview, items: Sequence[FunctionState], surface: Surface, column: str
) -> Grid[FunctionState]:
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
    grid=_functions_grid,
    details=details.function,
)


def _seconds(each: Compilation) -> float:
    return sum(each.phases.values())


def _reason(each: Compilation) -> str:
    return each.reason.removeprefix(f"`{each.function}`: ")


def _compilations_grid(
    view: Overview, items: Sequence[Compilation], surface: Surface, column: str
) -> Grid[Compilation]:
    longest = max((len(short(each.function)) for each in items), default=0)
    told = max((len(_reason(each)) for each in items), default=0)
    fields = [
        Field("time", 8, 2),
        Field("function", 14, 0, most=min(longest, _MOST_FUNCTION)),
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
    grid=_compilations_grid,
    details=details.compilation,
)


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
        grid=_processes_grid,
        details=lambda view, each, surface: [],
        enter="watch it",
    )


def _processes_grid(view: Overview, items: Sequence[Process], surface: Surface, column: str) -> Grid[Process]:
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
