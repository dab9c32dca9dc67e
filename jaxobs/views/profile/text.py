"""A profile as lines for a person: devices and what kept them idle first, then categories, functions, operations."""

from collections.abc import Iterator, Sequence

from jaxobs.facts.profiles import OperationTime, Profile
from jaxobs.profiles import stacks
from jaxobs.views.profile.parts import remarks
from jaxobs.views.terminal.lines import Column, Line, Surface, plain, row, sentence, titled
from jaxobs.views.terminal.text import duration, short

MOST_OPERATIONS = 20
MOST_FUNCTIONS = 10
MOST_DEVICES = 16

IDLE_TEXTS = {
    "compile": "a program was compiled",
    "checkpoint": "a checkpoint was written or read",
    "transfer": "arrays moved between host and device",
    "input": "the host waited for input",
    "garbage_collection": "Python collected garbage",
    "waiting": "the device waited for other devices",
    "dispatch": "Python or JAX was on its way to the next program",
    "unknown": "the trace does not say",
}


def lay_out(profile: Profile, source: str, notes: Sequence[str], surface: Surface) -> list[Line]:
    """The whole profile."""
    steps = "" if profile.steps is None else f", {profile.steps:,} step{'s' * (profile.steps != 1)}"
    lines: list[Line] = [[(" jaxobs profile  ", "program"), (surface.safe(source), "summary")]]
    lines.append(plain(f" {duration(profile.window_seconds)} traced{steps}", "dim"))
    for note in notes:
        lines += sentence(note, surface, "warn")
    lines += _devices(profile, surface)
    lines += _idle(profile, surface)
    lines += _categories(profile, surface)
    lines += _functions(profile, surface)
    lines += _operations(profile.operations, surface)
    return lines


def _devices(profile: Profile, surface: Surface) -> Iterator[Line]:
    if not profile.devices:
        return
    columns = [Column("device", 24), Column("busy", 10, right=True), Column("of the window", 13, right=True)]
    yield from titled("Devices", f"{len(profile.devices)}", surface, columns)
    for device in profile.devices[:MOST_DEVICES]:
        yield row(columns, [
            plain(surface.safe(device.device), "name"), plain(duration(device.busy_seconds), "number"),
            plain(f"{device.busy_ratio:.1%}", "number"),
        ])  # fmt: skip
    if len(profile.devices) > MOST_DEVICES:
        yield plain(f" {len(profile.devices) - MOST_DEVICES} more: see --json", "dim")


def _idle(profile: Profile, surface: Surface) -> Iterator[Line]:
    exchanges = profile.collectives
    everything = profile.window_seconds * len(profile.devices)
    if not everything:
        return
    if profile.idle:
        idle = sum(each.seconds for each in profile.idle)
        columns = [Column("reason", 18), Column("seconds", 10, right=True), Column("", max(20, surface.width - 34))]
        yield from titled("Idle time by reason", f"{duration(idle)}, {idle / everything:.1%}", surface, columns)
        for idle_time in profile.idle:
            yield row(columns, [
                plain(idle_time.reason, "name"), plain(duration(idle_time.seconds), "number"),
                plain(IDLE_TEXTS[idle_time.reason], "dim"),
            ])  # fmt: skip
    if exchanges is not None and exchanges.seconds:
        yield plain("")
        alone = f"in {duration(exchanges.exposed_seconds)} of that they did nothing else"
        yield from sentence(f"Devices exchanged data for {duration(exchanges.seconds)}, and {alone}.", surface)


def _categories(profile: Profile, surface: Surface) -> Iterator[Line]:
    seconds = profile.category_seconds
    everything = sum(seconds.values())
    if not everything:
        return
    columns = [Column("category", 18), Column("time", 10, right=True), Column("share", 7, right=True)]
    yield from titled("Time by category", duration(everything), surface, columns)
    for category, time in seconds.items():
        yield row(columns, [
            plain(category, "name"), plain(duration(time), "number"), plain(f"{time / everything:.1%}", "number"),
        ])  # fmt: skip


def _functions(profile: Profile, surface: Surface) -> Iterator[Line]:
    if not profile.functions:
        return
    count = f"{len(profile.functions):,} function{'s' * (len(profile.functions) != 1)}"
    columns = [
        Column("function", max(20, surface.width - 44)), Column("time", 10, right=True),
        Column("calls", 8, right=True), Column("each", 10, right=True),
    ]  # fmt: skip
    yield from titled("Functions", count, surface, columns)
    for function in profile.functions[:MOST_FUNCTIONS]:
        name = surface.cut(short(function.function), columns[0].width)
        yield row(columns, [
            plain(name, "name"), plain(duration(function.device_seconds), "number"),
            plain("" if function.calls is None else f"{function.calls:,}", "number"),
            plain(duration(function.device_seconds / function.calls) if function.calls else "", "number"),
        ])  # fmt: skip
    if len(profile.functions) > MOST_FUNCTIONS:
        yield plain(f" {len(profile.functions) - MOST_FUNCTIONS:,} shorter ones: see --json", "dim")


def _operations(rows: Sequence[OperationTime], surface: Surface) -> Iterator[Line]:
    if not rows:
        return
    count = f"{len(rows):,} operation{'s' * (len(rows) != 1)}"
    bounds = any(each.bound != "unknown" for each in rows)
    columns = [
        Column("share", 6, right=True), Column("time", 9, right=True), Column("count", 7, right=True),
        Column("category", 11), *([Column("bound", 7)] if bounds else []),
        Column("operation, scope, source", max(24, surface.width - (52 if bounds else 43))),
    ]  # fmt: skip
    yield from titled("Operations", count, surface, columns)
    width = columns[-1].width
    for operation in rows[:MOST_OPERATIONS]:
        bound = [plain("" if operation.bound == "unknown" else operation.bound, "dim")] if bounds else []
        yield row(columns, [
            plain(f"{operation.share:.1%}", "number"), plain(duration(operation.device_seconds), "number"),
            plain(f"{operation.count:,}", "number"), plain(operation.category, "cause"), *bound,
            plain(surface.cut(operation.operation, width), "name"),
        ])  # fmt: skip
        for text in (stacks.scope_within(operation), operation.source):
            if text is not None:
                yield row(columns, [*[plain("")] * (len(columns) - 1), plain(surface.cut(text, width), "dim")])
        for text in remarks(operation):
            yield row(columns, [*[plain("")] * (len(columns) - 1), plain(surface.cut(text, width), "warn")])
    if len(rows) > MOST_OPERATIONS:
        rest = sum(each.share for each in rows[MOST_OPERATIONS:])
        yield plain(f" {len(rows) - MOST_OPERATIONS:,} shorter ones with {rest:.1%}: see --json", "dim")
