"""A snapshot as lines for a terminal of a given size: whoever shows them adds colours.

The height is dealt to the sections before anything is cut: the view fills the screen and never passes it.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from jaxobs.facts import CacheLookup, Compilation, Snapshot
from jaxobs.terminal import functions, memory, sections
from jaxobs.terminal.cache import cache
from jaxobs.terminal.findings import findings
from jaxobs.terminal.inputs import inputs, watched
from jaxobs.terminal.lines import Line, Surface, crop, joined, length, plain, section, wrapped
from jaxobs.terminal.loops import loops
from jaxobs.terminal.out_of_memory import out_of_memory
from jaxobs.terminal.requests import requests
from jaxobs.terminal.text import Glyphs, duration, end, number, safe, size
from jaxobs.terminal.wall import goodput, wall

LEAST_WIDTH = 30
"""Columns below which the view is cut rather than laid out anew."""
ROOMY = 32
"""Rows from which sections are parted by a blank line."""
ROOMY_LEFT = 16
"""Rows left for functions and compilations from which each compilation tells its program as well."""

FRESH_SECONDS = 600.0
"""After so long an out-of-memory report gives its room to others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How the view stands with the process that it shows."""

    url: str
    gone_since: float | None = None
    """When it stopped answering, in seconds since the epoch; None while it answers."""
    error: str = ""
    interval: float | None = None
    """Seconds between two looks; None where there is but one."""
    news: str = ""
    """What happened to the connection lately: that the process was started again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What is known of a process, ready to be laid out."""

    snapshot: Snapshot
    connection: Connection
    compilations: Sequence[Compilation] = ()
    """The recent ones, oldest first."""
    lookups: Sequence[CacheLookup] = ()
    """The recent questions to the persistent cache, oldest first."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """Calls a second by function, where two looks tell it."""
    age: float = 0.0
    """Seconds since the snapshot was taken."""
    memory: bool = False
    """Whether memory is looked at, in the place of functions and compilations."""


def lay_out(view: Overview, surface: Surface) -> list[Line]:
    """The whole view, not wider and not higher than the surface; dim when the process is gone."""
    width, height = surface.width, surface.height
    surface = dataclasses.replace(surface, width=max(width, LEAST_WIDTH))
    head, foot = _header(view, surface), _footer(view, surface)
    left = None if height is None else height - len(head) - len(foot)
    body = _memory(view, surface, left) if view.memory else _body(view, surface, left)
    if view.connection.gone_since is not None:
        body = [[(text, "gone") for text, _ in line] for line in body]
    if height is not None:
        body = body[: max(height - len(head) - len(foot), 0)]
        body += [[] for _ in range(height - len(head) - len(foot) - len(body))]
    lines = [crop(line, width) for line in [*head, *body, *foot]]
    return lines if height is None else lines[:height]


def _header(view: Overview, surface: Surface) -> list[Line]:
    snapshot, connection, glyphs = view.snapshot, view.connection, surface.glyphs
    process = snapshot.process
    if connection.gone_since is not None:
        state: Line = plain(f"{glyphs.dot} gone since {_clock(connection.gone_since)}", "bad")
    elif connection.interval is not None:
        state = plain(f"{glyphs.dot} live", "good")
    else:
        state = plain(_clock(snapshot.time, date=True), "dim")
    room = surface.width - length(state) - 4
    program = safe(process.program or "python", surface.encoding)
    name = end(program, room, glyphs.ellipsis) if room > 8 else ""
    uptime = snapshot.time - process.started
    versions = {name: f"{name} {version}" for name, version in process.versions.items()}
    order = [versions.pop(name, "") for name in ("jax", "jaxlib", "python", "jaxobs")]
    facts = [
        process.hostname,
        f"pid {process.pid}",
        f"up {duration(uptime)}",
        sections.devices_in_words(snapshot, glyphs),
        f"process {process.process_index} of {process.process_count}" if process.process_count > 1 else "",
        *order,
        *versions.values(),
    ]
    told = joined([safe(fact, surface.encoding) for fact in facts], glyphs.separator, surface.width - 2)
    lines: list[Line] = [
        [(f" {name}", "program"), (" " * (surface.width - len(name) - length(state) - 2), ""), *state],
        plain(f" {told}", "dim"),
    ]
    if connection.gone_since is not None:
        text = f"The process is gone ({connection.error}). These are its last values; "
        text += "the view goes on when it is back."
        lines += [plain(f" {part}", "bad") for part in _sentence(text, surface, 2)]
    elif connection.news:
        lines += [plain(f" {part}", "warn") for part in _sentence(connection.news, surface, 1)]
    return lines


def _sentence(text: str, surface: Surface, most: int) -> list[str]:
    return wrapped(safe(text, surface.encoding), surface.width - 2, most, surface.glyphs)


def _footer(view: Overview, surface: Surface) -> list[Line]:
    connection = view.connection
    if connection.interval is None:
        return []
    pieces = [
        "q quit",
        "m functions" if view.memory else "m memory",
        connection.url,
        f"every {connection.interval:g} s",
    ]
    return [plain(" " + joined(pieces, surface.glyphs.separator, surface.width - 2), "dim")]


def _clock(moment: float, *, date: bool = False) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S" if date else "%H:%M:%S", time.localtime(moment))


def _body(view: Overview, surface: Surface, height: int | None) -> list[Line]:
    """The sections, each with the rows that the height leaves for it."""
    snapshot = view.snapshot
    roomy = height is None or height >= ROOMY
    now = snapshot.time + view.age
    small = _part(height, 5)
    built = {
        "findings": findings(snapshot.findings, surface, _part(height, 4)),
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
        "loops": loops(snapshot.loops, surface, part),
        "wall": wall(snapshot.wall, surface, None if roomy else 1),
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
    return f"{number(snapshot.requests_in_flight)} in flight" if snapshot.requests_in_flight else ""


def _part(height: int | None, parts: int) -> int | None:
    """The rows that a section may have where it is one of so many."""
    return None if height is None else height // parts if height >= 18 else 1


def _titled(ordered: Sequence[tuple[str, str, list[Line]]], surface: Surface, roomy: bool) -> list[Line]:
    lines: list[Line] = []
    for title, summary, rows in ordered:
        if rows:
            lines += [[]] if roomy else []
            lines += [section(title, summary, surface.width, surface.glyphs), *rows]
    return lines


def _memory(view: Overview, surface: Surface, height: int | None) -> list[Line]:
    """All that tells of memory: reports, leaks, devices, what holds them, who else is there."""
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
