"""The page as one HTML file: it loads nothing, and names of the program cannot become part of its markup."""

from __future__ import annotations

import html
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxobs.base.version import __version__
from jaxobs.facts.profiles import CATEGORIES, OperationTime, Profile
from jaxobs.profiles import intervals, stacks
from jaxobs.profiles.analysis import Analysis
from jaxobs.profiles.reading import Reading
from jaxobs.profiles.stacks import Node
from jaxobs.profiles.tracks import Track
from jaxobs.views.profile.parts import remarks
from jaxobs.views.profile.text import IDLE_TEXTS
from jaxobs.views.terminal.text import duration
from jaxobs.web.page import policy

MOST_OPERATIONS = 400
MOST_FUNCTIONS = 200
MOST_DEVICES = 64
_ROW = 20
"""Pixels of a row of the flame graph."""
_HERE = Path(__file__).parent


def page(reading: Reading, source: str) -> Iterator[bytes]:
    """Yields the page piece by piece; `source` is what was read, as the user named it."""
    for piece in _page(reading, source):
        yield piece.encode(errors="backslashreplace")


def _page(reading: Reading, source: str) -> Iterator[str]:
    profile = reading.profile
    script = f"<script>\n{_asset('page.js')}</script>"
    yield (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(script)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(f'Profile of {source}')}</title><style>\n{_asset('page.css')}</style></head><body><main>\n"
    )
    steps = "" if profile.steps is None else f", {profile.steps:,} step{'s' * (profile.steps != 1)}"
    about = f"{_text(source)}: {duration(profile.window_seconds)} traced{steps}"
    yield f"<header><h1>jaxobs profile</h1><p>{about}</p></header>\n"
    for note in reading.notes:
        yield f'<p class="note">{_text(note)}</p>\n'
    yield from _timelines(reading)
    yield from _flame(profile)
    yield '<div class="two">'
    yield from _idle(profile)
    yield from _categories(profile)
    yield "</div>\n"
    yield from _functions(profile)
    yield from _operations(profile.operations)
    yield f"<footer>jaxobs {__version__}</footer></main>\n{script}</body></html>\n"


def _asset(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _text(text: str) -> str:
    return html.escape(text)


def _timelines(reading: Reading) -> Iterator[str]:
    ratios = {each.device: each.busy_ratio for each in reading.profile.devices}
    if not ratios:
        return
    shown = [category for category in CATEGORIES if any(row.category == category for row in reading.profile.operations)]
    legend = "".join(f'<li><i style="background:var(--{each})"></i>{each}</li>' for each in shown)
    yield f'<section><h2>Devices<small>busy, over the trace</small></h2><ul class="legend">{legend}</ul>\n'
    drawn = 0
    for host, found in reading.hosts.items():
        seconds = found.profile.window_seconds
        for track in found.trace.tracks:
            name = f"{host}/{track.device}" if len(reading.hosts) > 1 else track.device
            drawn += 1
            if drawn > MOST_DEVICES:
                continue
            bars = "".join(_bar(each, seconds) for each in stretches(found, track))
            yield (
                f'<div class="device"><span class="mono">{_text(name)}</span><div class="track">{bars}</div>'
                f'<span class="num">{ratios.get(name, 0.0):.1%}</span></div>\n'
            )
    if drawn > MOST_DEVICES:
        yield f'<p class="device">{drawn - MOST_DEVICES:,} more are not drawn.</p>'
    yield "</section>\n"


def _bar(each: Stretch, seconds: float) -> str:
    what = f"idle, {each.name.replace('_', ' ')}" if each.idle else f"{each.name}, mostly {each.operation}"
    title = f"{what}: from {duration(each.start * seconds)} to {duration(each.end * seconds)}"
    place = f"left:{100 * each.start:.3f}%;width:{100 * (each.end - each.start):.3f}%"
    look = 'class="idle" style="' if each.idle else f'style="background:var(--{each.name});'
    return f'<i {look}{place}" title="{_text(title)}"></i>'


def _flame(profile: Profile) -> Iterator[str]:
    drawn = frames(profile.operations)
    if not drawn:
        return
    height = _ROW * (1 + max(each.deep for each in drawn))
    yield "<section><h2>Time by scope<small>function, scope, operation; press one to look closer</small></h2>"
    yield f'<div class="flame" style="height:{height}px">'
    for frame in drawn:
        title = f"{frame.name}: {duration(frame.seconds)}, {frame.width:.1%}" + (
            f", {frame.category}" if frame.category else ""
        )
        colour = f"background:var(--{frame.category});" if frame.category else ""
        kind = f' data-category="{frame.category}"' if frame.category else ""
        yield (
            f'<button type="button"{kind} data-start="{frame.start:.6f}" data-width="{frame.width:.6f}" '
            f'style="{colour}left:{100 * frame.start:.4f}%;width:{100 * frame.width:.4f}%;top:{_ROW * frame.deep}px" '
            f'title="{_text(title)}">{_text(frame.name)}</button>'
        )
    yield "</div></section>\n"


def _table(title: str, about: str, columns: Iterable[tuple[str, bool]], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """A table; cells are markup. Columns are names, and whether they hold numbers."""
    named = list(columns)
    head = "".join(f'<th class="num">{name}</th>' if numbers else f"<th>{name}</th>" for name, numbers in named)
    yield f"<section><h2>{title}<small>{about}</small></h2>"
    yield f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>\n'
    for cells in rows:
        made = zip(cells, named, strict=True)
        yield "<tr>" + "".join(f'<td class="num">{c}</td>' if n else f"<td>{c}</td>" for c, (_, n) in made) + "</tr>\n"
    yield "</tbody></table></div></section>\n"


def _idle(profile: Profile) -> Iterator[str]:
    everything = profile.window_seconds * len(profile.devices)
    rows = [
        (f"{_text(each.reason.replace('_', ' '))}<small>{_text(IDLE_TEXTS[each.reason])}</small>",
         duration(each.seconds), f"{each.seconds / everything:.1%}" if everything else "")
        for each in profile.idle
    ]  # fmt: skip
    exchanges = profile.collectives
    if exchanges is not None and exchanges.seconds:
        rows.append((
            "exposed exchanges<small>no idle time: the devices exchanged data and did nothing else"
            "</small>",
            duration(exchanges.exposed_seconds), f"{exchanges.exposed_seconds / everything:.1%}" if everything else "",
        ))  # fmt: skip
    yield from _table(
        "Idle time by reason", "added up over devices", [("reason", False), ("time", True), ("", True)], rows
    )


def _categories(profile: Profile) -> Iterator[str]:
    seconds = profile.category_seconds
    whole = sum(seconds.values())
    rows = [
        (f'<i style="background:var(--{name})"></i>{name}', duration(time), f"{time / whole:.1%}")
        for name, time in seconds.items()
    ]
    yield from _table("Time by category", duration(whole), [("category", False), ("time", True), ("", True)], rows)


def _functions(profile: Profile) -> Iterator[str]:
    columns = [("function", False), ("time", True), ("calls", True), ("each", True)]
    rows = (
        (f'<span class="mono">{_text(each.function)}</span>', duration(each.device_seconds),
         "" if each.calls is None else f"{each.calls:,}",
         duration(each.device_seconds / each.calls) if each.calls else "")
        for each in profile.functions[:MOST_FUNCTIONS]
    )  # fmt: skip
    yield from _table("Functions", _shown(len(profile.functions), MOST_FUNCTIONS), columns, rows)


def _operations(rows: tuple[OperationTime, ...]) -> Iterator[str]:
    columns = [
        ("operation, scope, source", False), ("function", False), ("category", False), ("time", True), ("share", True),
        ("count", True), ("GFLOP/s", True), ("GB/s", True), ("bound", False),
    ]  # fmt: skip
    yield from _table(
        "Operations", _shown(len(rows), MOST_OPERATIONS), columns, (_operation(row) for row in rows[:MOST_OPERATIONS])
    )


def _shown(count: int, most: int) -> str:
    return f"{count:,}" if count <= most else f"the first {most:,} of {count:,}"


def _operation(row: OperationTime) -> tuple[str, ...]:
    lines = (*(each for each in (row.scope, row.source) if each is not None), *remarks(row))
    places = "".join(f"<small>{_text(each)}</small>" for each in lines)
    return (
        f'<span class="mono">{_text(row.operation)}</span>{places}',
        f'<span class="mono fn">{_text(row.function or "")}</span>',
        f'<i style="background:var(--{row.category})"></i>{row.category}',
        duration(row.device_seconds), f"{row.share:.1%}", f"{row.count:,}",
        _rate(row.flops, row.device_seconds), _rate(row.bytes, row.device_seconds),
        "" if row.bound == "unknown" else row.bound,
    )  # fmt: skip


def _rate(amount: float | None, seconds: float) -> str:
    return f"{amount / seconds / 1e9:,.3g}" if amount and seconds else ""


LEAST = 0.0008
"""Share of all time below which a frame isn't drawn."""
MOST_FRAMES = 4_000
MOST_DEEP = 40


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of the flame graph; `start` and `width` are parts of all time."""

    name: str
    start: float
    width: float
    deep: int
    seconds: float
    category: str | None


def frames(rows: Sequence[OperationTime]) -> list[Frame]:
    """The frames from the root up, the widest first among those that lie on the same one."""
    root = stacks.tree(rows)
    return list(itertools.islice(_upward(root, 0.0, 0, root.seconds), MOST_FRAMES)) if root.seconds else []


def _upward(node: Node, start: float, deep: int, whole: float) -> Iterator[Frame]:
    yield Frame(node.name, start, node.seconds / whole, deep, node.seconds, node.category)
    if deep >= MOST_DEEP:
        return
    for inner in sorted(node.inside.values(), key=lambda each: (-each.seconds, each.name)):
        if inner.seconds / whole >= LEAST:
            yield from _upward(inner, start, deep + 1, whole)
        start += inner.seconds / whole


MOMENTS = 800


@dataclass(frozen=True, slots=True)
class Stretch:
    """Moments in a row with the same main thing. `start` and `end` are parts of the window, from 0 to 1."""

    start: float
    end: float
    name: str
    """A category, or the reason of idle time."""
    idle: bool
    operation: str | None
    """Category that had most of the time in it."""


def stretches(found: Analysis, track: Track) -> list[Stretch]:
    """The timeline of one device."""
    start, end = found.trace.window
    width = (end - start) / MOMENTS or 1.0
    moments: list[dict[tuple[str, bool, str | None], float]] = [defaultdict(float) for _ in range(MOMENTS)]
    for begun, ended, name, idle, operation in _spent(found, track):
        first = max(0, int((begun - start) / width))
        last = min(MOMENTS - 1, int((ended - start) / width))
        for at in range(first, last + 1):
            inside = min(ended, start + (at + 1) * width) - max(begun, start + at * width)
            if inside > 0:
                moments[at][name, idle, operation] += inside
    return list(_joined(moments))


def _spent(found: Analysis, track: Track) -> Iterator[tuple[float, float, str, bool, str | None]]:
    for row in track.rows:
        for begun, ended, run in intervals.own_time(row):
            yield begun, ended, found.describe(run).category, False, run.operation
    for begun, ended, reason in found.gaps.get(track.device, ()):
        yield begun, ended, reason, True, None


def _joined(moments: Iterable[dict[tuple[str, bool, str | None], float]]) -> Iterator[Stretch]:
    begun, current = 0, None
    inside: dict[str | None, float] = defaultdict(float)
    at = -1
    for at, spent in enumerate(moments):
        sums: dict[tuple[str, bool], float] = defaultdict(float)
        for (name, idle, _), time in spent.items():
            sums[name, idle] += time
        most = max(sums, key=lambda key: sums[key], default=None)
        if most != current and at:
            yield from _stretch(begun, at, current, inside)
            begun, inside = at, defaultdict(float)
        current = most
        for (name, idle, operation), time in spent.items():
            if (name, idle) == most:
                inside[operation] += time
    yield from _stretch(begun, at + 1, current, inside)


def _stretch(
    begun: int, ended: int, most: tuple[str, bool] | None, inside: dict[str | None, float]
) -> Iterator[Stretch]:
    if most is not None:
        name, idle = most
        operation = max(inside, key=lambda each: inside[each], default=None)
        yield Stretch(begun / MOMENTS, ended / MOMENTS, name, idle, operation)
