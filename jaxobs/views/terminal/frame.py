"""Frame of every view of `jaxobs top`: the process and its verdict above, the keys below."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from jaxobs.facts.compilations import CacheLookup, Compilation
from jaxobs.facts.snapshot import Snapshot
from jaxobs.views.terminal import sections
from jaxobs.views.terminal.findings import headline
from jaxobs.views.terminal.lines import Line, Surface, crop, length, plain
from jaxobs.views.terminal.text import clock, duration, shown

LEAST_WIDTH = 30
"""Columns below which the view is cut rather than laid out again."""
ROOMY = 32
"""Rows from which sections are parted by a blank line."""

KEPT_STYLES = ("selected",)
"""Styles that stay when the process is gone and everything else is dim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Connection of the view to the process that it shows."""

    url: str
    gone_since: float | None = None
    """Time at which the process stopped answering, in seconds since the epoch; None while it answers."""
    error: str = ""
    interval: float | None = None
    """Seconds between two looks; None where there is but one."""
    news: str = ""
    """Recent event of the connection: that the process was started again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """State of a process, ready to be laid out."""

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
    """Whether memory is looked at, instead of functions and compilations."""


def framed(
    view: Overview, surface: Surface, body: Callable[[Surface, int | None], list[Line]], keys: Sequence[str]
) -> list[Line]:
    """The `body` between header and footer, as large as the surface; dim when the process is gone."""
    width, height = surface.width, surface.height
    surface = dataclasses.replace(surface, width=max(width, LEAST_WIDTH))
    head, foot = _header(view, surface), _footer(view, surface, keys)
    left = None if height is None else max(height - len(head) - len(foot), 0)
    lines = body(surface, left)
    if view.connection.gone_since is not None:
        lines = [[(text, style if style in KEPT_STYLES else "gone") for text, style in line] for line in lines]
    if left is not None:
        lines = lines[:left]
        lines += [[] for _ in range(left - len(lines))]
    lines = [crop(_harmless(line, surface.encoding), width) for line in [*head, *lines, *foot]]
    return lines if height is None else lines[:height]


def _harmless(line: Line, encoding: str) -> Line:
    """The line as it may be sent to a terminal, whatever a section has overlooked."""
    if all(text.isascii() and text.isprintable() for text, _ in line):
        return line
    return [(shown(text, encoding), style) for text, style in line]


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
    name = surface.cut_end(process.program or "python", room) if room > 8 else ""
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
    lines: list[Line] = [
        [(f" {name}", "program"), (" " * (surface.width - len(name) - length(state) - 2), ""), *state],
        plain(f" {surface.joined(facts, 2)}", "dim"),
    ]
    if connection.gone_since is not None:
        text = f"The process is gone ({connection.error}). These are its last values; the view resumes when it is back."
        lines += [plain(f" {part}", "bad") for part in surface.wrapped(text, 2, 2)]
    elif connection.news:
        lines += [plain(f" {part}", "warn") for part in surface.wrapped(connection.news, 2, 1)]
    if snapshot.verdict is not None:
        roomy = surface.height is None or surface.height >= ROOMY
        lines += headline(snapshot.verdict, surface, 3 if roomy else 1)
    return lines


def _footer(view: Overview, surface: Surface, keys: Sequence[str]) -> list[Line]:
    connection = view.connection
    if connection.interval is None:
        return []
    pieces = [*keys, connection.url, f"every {connection.interval:g} s"]
    return [plain(f" {surface.joined(pieces, 2)}", "dim")]


def _clock(moment: float, *, date: bool = False) -> str:
    return clock(moment, "%Y-%m-%d %H:%M:%S" if date else "%H:%M:%S")
