"""The smaller sections of the overview, each a function from facts to rows that fit."""

from collections import Counter
from collections.abc import Mapping, Sequence

from jaxobs.facts.compilations import CacheLookup, CacheState, Compilation
from jaxobs.facts.errors import OutOfMemory
from jaxobs.facts.snapshot import Snapshot
from jaxobs.views.terminal.lines import Column, Line, Surface, bounded, length, plain, row, sentence
from jaxobs.views.terminal.text import Glyphs, clock, duration, flops, number, program_bytes, short, size

WIDE = 150
"""Columns from which a compilation and its sentence share one line."""


def devices_in_words(snapshot: Snapshot, glyphs: Glyphs) -> str:
    """`8 × NVIDIA H100`; or that the program has not woken its devices."""
    if not snapshot.devices:
        return snapshot.process.platform or "no device in use yet"
    kinds = Counter(each.device_kind or each.platform for each in snapshot.devices)
    return ", ".join(f"{count} {glyphs.times} {kind}" for kind, count in kinds.items())


def in_progress(snapshot: Snapshot, now: float, surface: Surface, most: int | None) -> list[Line]:
    """The phases that began and have not ended, the oldest first, with the time they have taken."""
    open_ones = sorted(snapshot.in_progress, key=lambda each: each.started)
    longest = max((len(short(each.function)) for each in open_ones), default=0)
    columns = [
        Column("", max(min(longest, surface.width - 47), 8)),
        Column("", 10),
        Column("", 8, right=True),
        Column("", 16),
    ]
    rows: list[Line] = []
    for phase in open_ones:
        elapsed = max(now - phase.started, 0.0)
        values = [
            plain(surface.cut(short(phase.function), columns[0].width), "busy"),
            plain(phase.phase.replace("_", " "), phase.phase),
            plain(duration(elapsed), "bad" if elapsed >= 60 else "busy"),
            plain(surface.cut(phase.thread, 16), "dim"),
        ]
        rows.append([(f" {surface.glyphs.marker}", "busy"), *row(columns, values)])
    return bounded(rows, most)


# ------------------------------------------------------------------------------- recent compilations


def recent(
    compilations: Sequence[Compilation],
    lookups: Sequence[CacheLookup],
    surface: Surface,
    most: int | None,
    *,
    facts: bool = False,
) -> list[Line]:
    """The newest compilations first, eager ones together; `facts` adds call site, cost and why unstored."""
    # A lookup is reported just before its compilation, with the same time.
    missed = {(each.function, each.time): each for each in lookups if each.reason or each.differs}
    groups = _grouped(compilations)
    longest = max((len(_group_name(group)) for group in groups), default=0)
    wide = surface.width >= WIDE
    columns = [
        Column("time", 8),
        Column("function", max(min(longest, surface.width - 50, max(surface.width // 6, 30)), 8)),
        Column("why", 15),
        Column("seconds", 8, right=True),
        Column("cache", 8),
    ]
    rows: list[Line] = []
    for group in groups:
        block = _block(group, columns, surface, wide, missed if facts else None)
        if most is not None and len(rows) + len(block) > most:
            # A block is cut only where nothing else would be reported at all.
            rows += block[:most] if not rows else []
            break
        rows += block
    return rows


def _grouped(compilations: Sequence[Compilation]) -> list[list[Compilation]]:
    groups: list[list[Compilation]] = []
    for compilation in reversed(compilations):
        if groups and compilation.eager and groups[-1][0].eager:
            groups[-1].append(compilation)
        else:
            groups.append([compilation])
    return groups


def _group_name(group: list[Compilation]) -> str:
    return f"{len(group)} eager operations" if len(group) > 1 else short(group[0].function)


def _block(
    group: list[Compilation],
    columns: list[Column],
    surface: Surface,
    wide: bool,
    missed: Mapping[tuple[str, float], CacheLookup] | None,
) -> list[Line]:
    """Lines of a compilation, or of some eager ones in a row: a line, and the lines of its sentence."""
    newest = group[0]
    together = len(group) > 1
    seconds = sum(sum(each.phases.values()) for each in group)
    quiet = newest.eager or newest.cause == "first_call"
    values = [
        plain(clock(newest.time), "dim"),
        plain(surface.cut(_group_name(group), columns[1].width), "dim" if newest.eager else "name"),
        plain("" if together else newest.cause, "dim" if quiet else "cause"),
        plain(duration(seconds), "number"),
        plain("" if together else newest.cache, "good" if newest.cache == "hit" else "dim"),
    ]
    first = row(columns, values)
    # The function stands in the line already.
    reason = newest.reason.removeprefix(f"`{newest.function}`: ")
    said = "" if together or (quiet and not wide) else reason
    indent = " " * (length(first) + 2 if wide else 11)
    parts = surface.wrapped(said, length(first) + 3 if wide else 13, 2)
    style = "dim" if quiet else "sentence"
    if wide and parts:
        first = [*first, ("  ", ""), (parts.pop(0), style)]
    lines: list[Line] = [first, *([(indent, ""), (part, style)] for part in parts)]
    if missed is None or newest.eager:
        return lines
    told = surface.joined(_facts(newest), len(indent) + 2)
    lines += [[(indent, ""), (told, "dim")]] if told else []
    lookup = missed.get((newest.function, newest.time))
    if lookup is not None:
        text = lookup.reason or "An earlier process had compiled it; the key differs in " + ", ".join(lookup.differs)
        lines += sentence(text, surface, "warn", len(indent), most=2)
    return lines


def _facts(each: Compilation) -> list[str]:
    """Call site of a compilation, the cost of one run of the program, and why it was not stored."""
    not_stored = each.uncached_detail or (each.uncached_because or "").replace("_", " ")
    return [
        each.where or "",
        flops(each.flops),
        size(program_bytes(each.memory)),
        f"{len(each.changes)} changes" if len(each.changes) > 1 else "",
        f"not stored: {not_stored}" if not_stored else "",
    ]


# --------------------------------------------------------------------------------------------- notes


def notes(snapshot: Snapshot, surface: Surface, most: int | None) -> list[Line]:
    """Remarks of jaxobs about itself, worst first; none when all is well."""
    observer = snapshot.observer
    told: list[tuple[str, str]] = []
    if not observer.installed:
        told.append(("jaxobs is not installed in this process: it sees only instrumented functions.", "warn"))
    for where, count in observer.internal_errors.items():
        said = f": {observer.latest_errors[where].text}" if where in observer.latest_errors else ""
        told.append((f"jaxobs itself failed in {where} ({count}){said}. The program is unaffected.", "bad"))
    blind = ", ".join(name for name, works in observer.capabilities.items() if not works)
    if blind:
        told.append((f"Not available with this version of JAX: {blind}.", "warn"))
    lost = ", ".join(f"{reason} ({number(count)})" for reason, count in observer.dropped.items() if count)
    if lost:
        told.append((f"Dropped to stay within limits: {lost}.", "warn"))
    told += [(note, "") for note in observer.notes]
    rows: list[Line] = []
    for text, style in told:
        rows += [plain(f" {part}", style) for part in surface.wrapped(text, 2, 1 if most else 4)]
    return rows[:most]


MOST_REASONS = 3


def cache(state: CacheState, compilations: Sequence[Compilation], surface: Surface) -> list[Line]:
    """A line of figures, and a line for each of the main reasons why programs were not stored; none where it is off."""
    if not state.enabled or not state.directory:
        return []
    grown = state.grown_bytes
    figures = [
        "" if state.entries is None else f"{number(state.entries)} entries",
        "" if state.bytes is None else size(state.bytes),
        "" if not grown else f"{'-' if grown < 0 else '+'}{size(abs(grown))} since first seen",
        f"saved {state.saved_seconds:,.2f} s" if state.saved_seconds else "",
        state.directory,
    ]
    told = surface.joined(figures, 2)
    return [*([plain(f" {told}")] if told else []), *_unsaved(state.unsaved, compilations, surface)]


def _unsaved(unsaved: Mapping[str, int], compilations: Sequence[Compilation], surface: Surface) -> list[Line]:
    details = {each.uncached_because: each.uncached_detail for each in compilations if each.uncached_because}
    lines: list[Line] = []
    order = sorted((reason for reason in unsaved if unsaved[reason]), key=lambda reason: -unsaved[reason])
    for reason in order[:MOST_REASONS]:
        latest = f"; latest: {details[reason]}" if details.get(reason) else ""
        text = f"{number(unsaved[reason])} not stored, {reason.replace('_', ' ')}{latest}"
        lines += [plain(f" {part}", "dim") for part in surface.wrapped(text, 2, 2)]
    return lines


def out_of_memory(event: OutOfMemory | None, surface: Surface, most: int | None) -> list[Line]:
    """In at most `most` lines: the head, the likeliest cause, what to do, the file; nothing where there was none."""
    if event is None:
        return []
    wanted = "" if event.wanted_bytes is None else f"{size(event.wanted_bytes)} wanted"
    pieces = [clock(event.time), short(event.function), wanted, event.device or "", event.call_site or ""]
    lines = [plain(f" {surface.glyphs.marker} {surface.joined(pieces, 4)}", "bad")]
    room = None if most is None else max(most - 1, 0)
    path = [] if event.report is None else sentence(f"Report: {event.report}", surface, "dim", 3, most=2)
    for cause in event.causes[:1]:
        # What to do counts most where there is little room, then why it was.
        advice = sentence(f"Do: {cause.advice}", surface, "good", 3, most=_share(room, 2))
        room = None if room is None else room - len(advice)
        why = sentence(f"{cause.summary} [{cause.cause}]", surface, "sentence", 3, most=_share(room, 1))
        room = None if room is None else room - len(why)
        lines += [*why, *advice]
    return [*lines, *path[:room]]


def _share(room: int | None, parts: int) -> int:
    """Lines for one of the sentences."""
    return 4 if room is None else min(4, -(-room // parts))
