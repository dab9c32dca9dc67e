"""A snapshot as lines for a terminal of a given size: whoever shows them adds colours.

The height is dealt to the sections before anything is cut: the view fills the screen and never passes it.
"""

from collections.abc import Sequence
from functools import partial

from jaxobs.facts.inputs import InputState
from jaxobs.facts.loops import LoopState
from jaxobs.facts.numbers import WatchedState
from jaxobs.facts.requests import Latency, RouteState
from jaxobs.facts.snapshot import Snapshot
from jaxobs.findings.parts import account
from jaxobs.views.terminal import functions, memory, sections
from jaxobs.views.terminal.findings import findings
from jaxobs.views.terminal.frame import ROOMY, Overview, framed
from jaxobs.views.terminal.lines import Column, Line, Surface, bounded, cells, grid_width, heading, plain, row, section
from jaxobs.views.terminal.sections import cache, out_of_memory
from jaxobs.views.terminal.text import Glyphs, duration, number, short, size
from jaxobs.views.terminal.wall import BY_LINE, goodput, host_lines, wall

ROOMY_LEFT = 16
"""Rows left for functions and compilations from which each compilation tells its program as well."""

FRESH_SECONDS = 600.0
"""After so long an out-of-memory report gives its room to others."""


def lay_out(view: Overview, surface: Surface) -> list[Line]:
    """The whole view, not wider and not higher than the surface; dim when the process is gone."""
    keys = ("q quit", "? help", "m back") if view.memory else ("q quit", "? help", "Tab lists", "m memory")
    return framed(view, surface, partial(body, view), keys)


def body(view: Overview, surface: Surface, height: int | None) -> list[Line]:
    """Lines between header and footer; all of them if `height` is `None`."""
    return _memory(view, surface, height) if view.memory else _sections(view, surface, height)


def _sections(view: Overview, surface: Surface, height: int | None) -> list[Line]:
    """The sections, each with the rows that the height leaves for it."""
    snapshot = view.snapshot
    roomy = height is None or height >= ROOMY
    now = snapshot.time + view.age
    small = _part(height, 5)
    built = {
        "findings": findings(snapshot.findings, surface, _part(height, 4), snapshot.verdict),
        "died": _died(snapshot, surface, height),
        "cache": cache(snapshot.cache, view.compilations, surface) if roomy else [],
        **_training(snapshot, surface, height, roomy),
        "progress": sections.in_progress(snapshot, now, surface, small),
        "requests": requests(snapshot.routes, surface, _part(height, 6)),
        "memory": memory.devices(snapshot, surface, small),
        "notes": sections.notes(snapshot, surface, None if small is None else max(1, small // 2)),
    }
    left: int | None = None
    if height is not None:
        titled = 2 + len([lines for lines in built.values() if lines])
        blanks = titled if roomy else 0
        # One row each goes to the titles, one more to the heading of the functions.
        left = max(height - titled - 1 - blanks - sum(len(lines) for lines in built.values()), 0)
    function_rows, recent_rows = _dealt(view, surface, now, left)
    ordered = [
        ("Out of memory", "", built["died"]),
        ("Findings", number(len(snapshot.findings)), built["findings"]),
        ("Compiling now", "", built["progress"]),
        ("Requests", _in_flight(snapshot), built["requests"]),
        ("Steps", "" if roomy else goodput(snapshot.wall), built["loops"]),
        ("Where the time went", goodput(snapshot.wall), built["wall"]),
        (BY_LINE, "", built["lines"]),
        ("Input", "", built["inputs"]),
        ("Watched values", "", built["watched"]),
        ("Functions", _summary(snapshot, surface.glyphs), function_rows),
        ("Recent compilations", "", recent_rows),
        ("Persistent cache", "", built["cache"]),
        ("Device memory", "", built["memory"]),
        ("Notes", "", built["notes"]),
    ]
    return _titled(ordered, surface, roomy)


def _training(snapshot: Snapshot, surface: Surface, height: int | None, roomy: bool) -> dict[str, list[Line]]:
    """Steps, time, input and watched values; in a low terminal a line each below one title, and no good news."""
    part = _part(height, 8)
    found = {
        "loops": [*loops(snapshot.loops, surface, part), *(host_work(snapshot, surface) if roomy else [])],
        "wall": wall(snapshot.wall, surface, None if roomy else 1),
        "lines": host_lines(snapshot.loops, surface, part if roomy else 0),
        "inputs": inputs(snapshot.inputs, surface, part if roomy else 1),
        "watched": watched(snapshot.watched, surface, part if roomy else 1),
    }
    if not roomy and found["loops"]:
        bad = found["watched"] if any(each.nonfinite for each in snapshot.watched) else []
        more = [] if height is not None and height < 18 else [*found["wall"], *found["inputs"]]
        return {**{name: [] for name in found}, "loops": [*found["loops"], *more, *bad]}
    return found


def _died(snapshot: Snapshot, surface: Surface, height: int | None) -> list[Line]:
    """The latest out-of-memory report; one that the process has long survived is one line."""
    event = snapshot.last_out_of_memory
    fresh = event is not None and snapshot.time - event.time < FRESH_SECONDS
    return out_of_memory(event, surface, _part(height, 4) if fresh or height is None else 1)


def _in_flight(snapshot: Snapshot) -> str:
    """Requests that are served, those that wait for an engine, and the fullest cache of one."""
    found = [f"{number(snapshot.requests_in_flight)} in flight"] if snapshot.requests_in_flight else []
    waiting = [each.waiting for each in snapshot.engines if each.waiting is not None]
    caches = [each.kv_cache_ratio for each in snapshot.engines if each.kv_cache_ratio is not None]
    if waiting:
        found.append(f"{number(sum(waiting))} waiting")
    if caches:
        found.append(f"KV cache {max(caches):.0%}".replace("%", " %"))
    return " · ".join(found)


def _part(height: int | None, parts: int) -> int | None:
    """The rows that a section may have where it is one of so many."""
    return None if height is None else height // parts if height >= 18 else 1


def _titled(ordered: Sequence[tuple[str, str, list[Line]]], surface: Surface, roomy: bool) -> list[Line]:
    lines: list[Line] = []
    for title, summary, rows in ordered:
        if rows:
            lines += [[]] if roomy else []
            lines += [section(title, summary, surface), *rows]
    return lines


def _memory(view: Overview, surface: Surface, height: int | None) -> list[Line]:
    """All that concerns memory: reports, leaks, devices, what holds them, who else is there."""
    snapshot = view.snapshot
    part = _part(height, 5)
    leaks = [each for each in snapshot.findings if each.finding.endswith("_leak")]
    left = snapshot.headroom
    ordered = [
        ("Out of memory", "", _died(snapshot, surface, height)),
        ("Findings", "", findings(leaks, surface, part)),
        (
            "Device memory",
            "" if left is None else f"{size(left.bytes)} left on {left.device}",
            memory.devices(snapshot, surface, part),
        ),
        ("In use for", "", memory.account(snapshot, surface)[: None if part is None else part + 1]),
        ("By the driver", "", memory.accelerators(snapshot.accelerators, surface, part)),
    ]
    taken = sum(len(rows) + 2 for _, _, rows in ordered if rows)
    room = None if height is None else max(height - taken - 2, 0)
    ordered.append(("Largest groups of live arrays", "", memory.groups(snapshot.array_groups, surface, room)))
    return _titled(ordered, surface, height is None or height >= ROOMY)


def _dealt(view: Overview, surface: Surface, now: float, left: int | None) -> tuple[list[Line], list[Line]]:
    """The functions and the recent compilations, which share the rows that are left."""
    wanted = len(view.snapshot.functions)
    shown = partial(sections.recent, view.compilations, view.lookups, surface, facts=left is None or left >= ROOMY_LEFT)
    recent_rows = shown(left)
    if left is not None:
        # Functions get half of them, or more where the compilations do not need their half.
        for_functions = min(wanted, max(left // 2, left - len(recent_rows), 3))
        recent_rows = shown(max(left - for_functions, 0))
        wanted = min(wanted, max(left - len(recent_rows), 3))
    table = functions.table(view.snapshot, view.rates, view.compilations, now, surface, wanted)
    return table, recent_rows


def _summary(snapshot: Snapshot, glyphs: Glyphs) -> str:
    compiled = sum(each.compiled for each in snapshot.functions)
    seconds = sum(sum(each.phase_seconds.values()) for each in snapshot.functions)
    pieces = [f"{number(compiled)} compilation{'s' * (compiled != 1)}", duration(seconds)]
    if snapshot.cache.enabled:
        asked = {result: sum(each.cache.get(result, 0) for each in snapshot.functions) for result in ("hit", "miss")}
        pieces.append(f"cache {number(asked['hit'])} hit, {number(asked['miss'])} miss")
    else:
        pieces.append("no persistent cache")
    return f" {glyphs.separator} ".join(pieces)


def loops(states: Sequence[LoopState], surface: Surface, most: int | None) -> list[Line]:
    """A line for each loop, those that continued last first; at most `most`."""
    ordered = sorted(states, key=lambda each: -(each.ended or 0.0))
    return [_line(each, surface) for each in ordered[:most]]


def host_work(snapshot: Snapshot, surface: Surface) -> list[Line]:
    """A line with the callbacks of a step and, where they take a hundredth of it, the garbage collector's pauses."""
    each = {} if snapshot.wall is None else account(snapshot.wall, snapshot.loops).each_step
    least = 0.01 * max((state.mean_seconds or 0.0 for state in snapshot.loops), default=0.0)
    told = [
        f"{each[name]:.3g} {words} ({duration(each[seconds])})"
        for name, seconds, words, bound in (
            ("callbacks", "callback_seconds", "calls of Python by compiled programs", 0.0),
            ("pauses", "pause_seconds", "pauses of the garbage collector", least),
        ) if each.get(seconds, 0.0) > bound
    ]  # fmt: skip
    return [[(" in a step", "program"), *plain(f"  {surface.joined(told, 12)}")]] if told else []


def _line(state: LoopState, surface: Surface) -> Line:
    name = surface.name(short(state.name))
    times = (
        f"p50 {duration(state.p50_seconds)}, p99 {duration(state.p99_seconds)}"
        if state.p50_seconds is not None
        else "" if state.mean_seconds is None else f"mean {duration(state.mean_seconds)}"
    )  # fmt: skip
    figures = [
        f"{number(state.steps)} steps" if state.steps_counted else "",
        "" if state.steps_per_second is None else f"{state.steps_per_second:.3g} per second",
        times,
        "" if state.items_per_second is None else f"{number(state.items_per_second)} items per second",
        _mfu(state),
        f"{number(state.slow)} slow" if state.slow else "",
        f"{number(state.failed)} failed" if state.failed else "",
        "found" if state.found else "",
    ]
    return [(f" {name}", "program"), *plain(f"  {surface.joined(figures, len(name) + 4)}")]


def _mfu(state: LoopState) -> str:
    if state.mfu is not None:
        return f"MFU {100 * state.mfu:.3g} %"
    if state.mfu_range is None:
        return ""
    least, most = state.mfu_range
    return f"MFU {100 * least:.2g} to {100 * most:.2g} %"


LEAST_ROUTE = 8


def requests(routes: Sequence[RouteState], surface: Surface, most: int | None) -> list[Line]:
    """The busiest routes first, with a heading; none if nothing is served."""
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
    """As many as fit next to the route, those that matter most first."""
    columns = [
        Column(title, width, right=True)
        for title, width in (
            ("per s", 7), ("warm p50", 8), ("warm p99", 8), *_generated(routes), ("cold", 6), ("cold p50", 8),
            ("errors", 7), ("waited", 6), ("requests", 10),
        )
    ]  # fmt: skip
    while len(columns) > 1 and grid_width([Column("route", LEAST_ROUTE), *columns]) > surface.width - 1:
        columns.pop()
    longest = max(cells(surface.safe(each.route)) for each in routes)
    room = surface.width - 1 - grid_width([Column("", 0), *columns])
    return [Column("route", max(LEAST_ROUTE, min(longest, room))), *columns]


def _generated(routes: Sequence[RouteState]) -> list[tuple[str, int]]:
    """The columns of text that is generated; none if none is."""
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
        return plain(surface.cut(route.route, width), "name")
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


_VERDICTS = {
    "input": ("input-bound", "warn"),
    "compute": ("input keeps up", "good"),
    "mixed": ("both cost", "number"),
    None: ("not known yet", "dim"),
}


def inputs(states: Sequence[InputState], surface: Surface, most: int | None) -> list[Line]:
    """Lists inputs, those with the longest waits first."""
    ordered = sorted(states, key=lambda each: (-each.wait_seconds, each.name))
    return bounded([_input(each, surface) for each in ordered], most)


def _input(state: InputState, surface: Surface) -> Line:
    name = surface.name(state.name)
    verdict, style = _VERDICTS[state.verdict]
    if 2 * state.elsewhere_batches > state.batches:
        verdict = "on another thread"
    figures = [
        ""
        if state.mean_interval_seconds is None
        else f"waits {duration(state.mean_wait_seconds)} of {duration(state.mean_interval_seconds)} a batch "
        f"({state.share or 0.0:.0%})",
        f"{number(state.batches)} batches",
        f"{duration(state.wait_seconds)} waited",
    ]
    line: Line = [(f" {name}", "program"), *plain(f"  {verdict}", style)]
    taken = sum(cells(text) for text, _ in line)
    told = surface.joined(figures, taken + 4)
    return [*line, *plain(f" {surface.glyphs.separator} {told}" if told else "")]


def watched(states: Sequence[WatchedState], surface: Surface, most: int | None) -> list[Line]:
    """A line for each that was not finite; one for all others."""
    bad = [each for each in states if each.nonfinite]
    lines = [_bad(each, surface) for each in bad]
    fine = [surface.name(each.name) for each in states if not each.nonfinite and each.checked]
    unseen = [surface.name(each.name) for each in states if not each.nonfinite and not each.checked]
    for said, names in (("finite", fine), ("not checked yet", unseen)):
        if names:
            told = surface.joined(names, len(said) + 4)
            lines.append([(f" {said}", "good" if said == "finite" else "dim"), *plain(f"  {told}")])
    return bounded(lines, most)


def _bad(state: WatchedState, surface: Surface) -> Line:
    figures = [
        "not finite" if state.finite is not True else "finite again",
        "" if state.step is None else f"first at call {number(state.step)}",
        f"{number(state.nonfinite)} of {number(state.checked)} values",
    ]
    name = surface.name(state.name)
    told = surface.joined(figures, cells(name) + 4)
    return [(f" {name}", "program"), *plain(f"  {told}", "bad" if state.finite is not True else "warn")]
