"""The table of functions: which columns there are, which of them a width has room for, and their cells."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jaxobs.facts.compilations import OTHER, PHASES, Compilation
from jaxobs.facts.functions import FunctionState, ProgramState
from jaxobs.facts.snapshot import Snapshot
from jaxobs.views.terminal.lines import GAP, Column, Line, Surface, heading, plain, row
from jaxobs.views.terminal.text import (
    PHASE_LETTERS,
    ago,
    causes,
    duration,
    flops,
    number,
    program_bytes,
    shares,
    short,
    size,
)

NAME_LEAST, WHY_LEAST = 18, 14
NAME_MOST, WHY_MOST, BAR_MOST = 60, 60, 40


@dataclass(frozen=True, slots=True)
class _Context:
    """Values that a cell may need next to its function."""

    rates: Mapping[str, float]
    programs: Mapping[str, Compilation | ProgramState]
    """The latest compilation of each function whose program is known."""
    now: float
    most_seconds: float
    surface: Surface
    widths: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Spec:
    """A possible column; columns of the highest rank go first if the width does not suffice."""

    title: str
    width: int
    rank: int
    cell: Callable[[FunctionState, _Context], Line]
    said: Callable[[FunctionState, _Context], object] = lambda *_: True
    """Returns a true value if the column has something to show for a function."""
    right: bool = True


def table(
    snapshot: Snapshot,
    rates: Mapping[str, float],
    compilations: Sequence[Compilation],
    now: float,
    surface: Surface,
    most: int,
) -> list[Line]:
    """The functions, those that took most time to compile first, in at most `most` rows and a heading."""
    if not snapshot.functions:
        return [plain(" Nothing has compiled yet.", "dim")]
    order = sorted(snapshot.functions, key=by_cost)
    shown = order if len(order) <= most else order[: max(most - 1, 0)]
    first, line = grid(order, rates, compilations, now, surface)
    rows = [first, *(line(each) for each in shown)]
    if len(shown) < len(order):
        rest = order[len(shown) :]
        compiled, cost = sum(each.compiled for each in rest), sum(_seconds(each) for each in rest)
        rows.append(plain(f" {len(rest)} more: {number(compiled)} compilations, {duration(cost)}", "dim"))
    return rows


def grid(
    states: Sequence[FunctionState],
    rates: Mapping[str, float],
    compilations: Sequence[Compilation],
    now: float,
    surface: Surface,
    ordered_by: str = "",
) -> tuple[Line, Callable[[FunctionState], Line]]:
    """The heading, with the column that they are ordered by marked, and what makes the row of a function."""
    most_seconds = max(map(_seconds, states), default=0.0)
    context = _Context(rates, programs(states, compilations), now, most_seconds, surface, {})
    specs = _fit(states, context, ordered_by)
    columns = [Column(spec.title, context.widths[spec.title], spec.right) for spec in specs]
    return heading(columns, ordered_by=ordered_by), lambda each: row(
        columns, [spec.cell(each, context) for spec in specs]
    )


def programs(
    states: Sequence[FunctionState], compilations: Sequence[Compilation]
) -> Mapping[str, Compilation | ProgramState]:
    """The latest program of each function of which it is known what it takes."""
    found: dict[str, Compilation | ProgramState] = {each.function: each for each in compilations if _told(each)}
    # What a small program costs is read after a while, and stands with the function.
    return found | {each.name: each.program for each in states if each.program and _told(each.program)}


def _told(program: Compilation | ProgramState) -> bool:
    return program.flops is not None or bool(program.memory)


def by_cost(each: FunctionState) -> tuple[bool, float, str]:
    """Returns the sort key of functions by compile time."""
    return each.name == OTHER, -_seconds(each), each.name


def _seconds(each: FunctionState) -> float:
    return sum(each.phase_seconds.values())


def _fit(order: Sequence[FunctionState], context: _Context, ordered_by: str) -> list[_Spec]:
    """Returns the columns that the width has room for, and sets their widths in the context."""
    specs = [spec for spec in _SPECS if any(spec.said(each, context) for each in order)]
    surface, widths = context.surface, context.widths
    room = surface.width - 2
    # Room for readable names and causes comes before the last columns.
    longest = max((len(short(each.name)) for each in order), default=0)
    whys = [causes(_cause_counts(each), 1000, surface.glyphs) for each in order]
    causes_told = max((len(" ".join(text for _, text in why)) for why in whys), default=0)
    extra = max(min(longest, surface.width // 5) - NAME_LEAST, 0)
    extra += max(min(causes_told, surface.width // 6) - WHY_LEAST, 0)
    while extra + sum(spec.width + GAP for spec in specs) - GAP > room and len(specs) > 2:
        specs.remove(max(specs, key=lambda spec: (spec.title != ordered_by, spec.rank)))
    widths |= {spec.title: spec.width for spec in specs}
    spare = room - sum(widths.values()) - GAP * (len(specs) - 1)
    wanted = {"function": min(longest, NAME_MOST), "why": min(causes_told, WHY_MOST), "by phase": BAR_MOST}
    for title, share in (("function", 0.6), ("why", 1.0), ("function", 1.0), ("by phase", 1.0)):
        if title in widths:
            more = max(min(wanted[title] - widths[title], int(spare * share)), 0)
            widths[title] += more
            spare -= more
    return specs


# --------------------------------------------------------------------------------------------- cells


def _name(each: FunctionState, context: _Context) -> Line:
    surface, width = context.surface, context.widths["function"]
    style = "dim" if each.name.startswith("<") else "name"
    return plain(surface.cut(short(each.name), width), style)


def _rate(each: FunctionState, context: _Context) -> Line:
    rate = context.rates.get(each.name)
    return plain(number(rate), "busy" if rate else "dim")


def _compiled(each: FunctionState, context: _Context) -> Line:
    return plain(number(each.compiled), "warn" if each.compiled > 1 and not each.name.startswith("<") else "")


def _why(each: FunctionState, context: _Context) -> Line:
    pieces = causes(_cause_counts(each), context.widths["why"], context.surface.glyphs)
    line: Line = []
    for cause, text in pieces:
        line += [(" ", "")] if line else []
        line.append((text, "dim" if cause in ("", "first_call") else "cause"))
    return line


def _cause_counts(each: FunctionState) -> dict[str, int]:
    return {cause: sum(by_cache.values()) for cause, by_cache in each.compilations.items()}


def _hits(each: FunctionState, context: _Context) -> Line:
    if not each.cache.get("hit") and not each.cache.get("miss"):
        return []
    return [
        (number(each.cache.get("hit", 0)), "good" if each.cache.get("hit") else "dim"),
        ("/", "dim"),
        (number(each.cache.get("miss", 0)), "" if each.cache.get("miss") else "dim"),
    ]


def _errors(each: FunctionState, context: _Context) -> Line:
    return plain(number(sum(each.errors.values())) if each.errors else "", "bad")


def _slow(each: FunctionState, context: _Context) -> Line:
    """Calls that fell out of the fast path and compiled nothing."""
    return plain(number(sum(each.fastpath_misses.values())) if each.fastpath_misses else "", "warn")


def _flops(each: FunctionState, context: _Context) -> Line:
    program = context.programs.get(each.name)
    return plain(flops(program.flops).removesuffix("FLOP").strip() if program else "", "dim")


def _memory(each: FunctionState, context: _Context) -> Line:
    program = context.programs.get(each.name)
    return plain(size(program_bytes(program.memory)) if program else "", "dim")


def _phase(name: str) -> tuple[Callable[[FunctionState, _Context], Line], Callable[[FunctionState, _Context], object]]:
    """Returns the cell of a phase's seconds, and whether there are any."""
    return (
        lambda each, _: plain(duration(each.phase_seconds.get(name)), name),
        lambda each, _: each.phase_seconds.get(name),
    )


def _bar(each: FunctionState, context: _Context) -> Line:
    """The seconds by phase, against those of the most expensive function; letters where colours cannot tell."""
    ordered = {phase: each.phase_seconds.get(phase, 0.0) for phase in PHASES}
    dealt = shares(ordered, context.most_seconds, context.widths["by phase"])
    full = context.surface.glyphs.full if context.surface.colour else None
    return [((full or PHASE_LETTERS[phase]) * count, phase) for phase, count in dealt]


def _ago(each: FunctionState, context: _Context) -> Line:
    return [] if each.last_compiled is None else plain(ago(context.now - each.last_compiled), "dim")


_SPECS = (
    _Spec("function", NAME_LEAST, 0, _name, right=False),
    _Spec("calls", 7, 2, lambda each, _: plain(number(each.calls)), lambda each, _: each.calls is not None),
    _Spec("per s", 6, 4, _rate, lambda each, context: context.rates),
    _Spec("errors", 6, 5, _errors, lambda each, _: each.errors),
    _Spec("slow", 6, 5, _slow, lambda each, _: each.fastpath_misses),
    _Spec("comp.", 5, 1, _compiled),
    _Spec("why", WHY_LEAST, 1, _why, right=False),
    _Spec("hit/miss", 8, 6, _hits, _hits),
    _Spec("trace", 8, 9, *_phase("trace")),
    _Spec("lower", 8, 10, *_phase("lower")),
    _Spec("compile", 8, 8, *_phase("compile")),
    _Spec("load", 8, 11, *_phase("cache_load")),
    _Spec("seconds", 8, 2, lambda each, _: plain(duration(_seconds(each)), "number")),
    _Spec("by phase", 8, 3, _bar, right=False),
    _Spec("flop", 6, 13, _flops, lambda each, context: each.name in context.programs),
    _Spec("memory", 8, 12, _memory, lambda each, context: each.name in context.programs),
    _Spec("last", 9, 14, _ago),
)
