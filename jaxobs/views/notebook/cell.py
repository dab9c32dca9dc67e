"""Result of a cell as blocks: its time, compilations with reasons, memory, and findings."""

from collections.abc import Iterator

from jaxobs.facts.cells import Cell, CellMemory, Compiled
from jaxobs.facts.compilations import EAGER
from jaxobs.findings.compilations.support.case import plural
from jaxobs.views.notebook.blocks import Block, Heading, Row, Say, Table
from jaxobs.views.notebook.process import groups, seconds, without_empty
from jaxobs.views.notebook.text import entries
from jaxobs.views.terminal.text import duration, number, short, size

MOST_COMPILED = 10
REST = ("init", "idle", "unattributed")
"""Categories that a cell sums up as Python and waiting for devices; in a cell that failed, also as the traceback,
which IPython shows before it reports the end of the cell."""
_REST_NAME = "Python and execution"
_REST_OF_FAILED = "Python, execution and the traceback"


def cell(shown: Cell) -> list[Block]:
    """Everything that is known of a cell."""
    return [
        Say(f"{_name(shown)} {_gist(shown)}"),
        *seconds("Where the time went", _spent(shown)),
        *_devices(shown),
        *_compiled(shown),
        *_memory(shown.memory),
        *_findings(shown),
    ]


def line(shown: Cell) -> list[Block]:
    """Returns the result of a cell in one sentence."""
    dearest = [
        f"`{short(each.costliest.function)}` {duration(each.seconds)} "
        f"({'loaded from the cache' if each.loaded else each.costliest.cause})"
        for each in shown.compiled[:3]
    ]
    more = len(shown.compiled) - len(dearest)
    told = ", ".join(dearest) + (f" and {more} more" if more > 0 else "")
    return [Say(f"jaxobs: {_name(shown)} {_gist(shown)} {told}. `%jaxobs last` has the details.", tone="quiet")]


def _name(shown: Cell) -> str:
    return "This cell" if shown.number is None else f"Cell [{shown.number}]"


def _gist(shown: Cell) -> str:
    took = f"{'failed after' if shown.failed else 'took'} {duration(shown.seconds)}"
    if not shown.compilations:
        return f"{took}. Nothing compiled."
    loaded = sum(each.count for each in shown.compiled if each.loaded)
    compiled = shown.compilations - loaded
    told = [plural(compiled, "program") + " compiled"] if compiled else []
    told += [f"{plural(loaded, 'program')} loaded from the persistent cache"] if loaded else []
    return f"{took}, {duration(shown.compile_seconds)} of it compiling: {' and '.join(told)}."


def _spent(shown: Cell) -> dict[str, float]:
    """Seconds by category; what is not a category of its own is one part."""
    known = {name: value for name, value in shown.time.items() if name not in REST and value > 0}
    rest = sum(shown.time.get(name, 0.0) for name in REST)
    ordered = dict(sorted(known.items(), key=lambda item: -item[1]))
    name = _REST_OF_FAILED if shown.failed else _REST_NAME
    return ordered | ({name: rest} if rest > 0 else {})


def _devices(shown: Cell) -> Iterator[Block]:
    waited = shown.still_computing
    if waited is None or (waited < max(0.01, 0.01 * shown.seconds) and not shown.unfinished):
        return
    earlier = " Some of that may be work from earlier cells." if shown.computing_before else ""
    computed = "was still computing" if shown.unfinished else "computed for another"
    yield Say(f"The device {computed} {duration(waited)} after the last line.{earlier}")


def _compiled(shown: Cell) -> Iterator[Block]:
    if not shown.compiled:
        return
    yield Heading("Compilations, most expensive first")
    kept = shown.compiled[:MOST_COMPILED]
    cached = any(each.costliest.cache != "disabled" for each in kept)
    titles = ("function", "cause", *(("cache",) if cached else ()), ">programs", ">seconds")
    yield Table(titles, [_row(each, cached) for each in kept])
    rest = shown.compiled[MOST_COMPILED:]
    count = sum(each.count for each in rest) + shown.dropped
    if count:
        cost = sum(each.seconds for each in rest) + shown.dropped_seconds
        yield Say(f"{plural(count, 'more program')}, {duration(cost)}.", tone="quiet")


def _row(each: Compiled, cached: bool) -> Row:
    event = each.costliest
    most = "The costliest: " if each.count > 1 else ""
    notes = [f"{most}{event.reason}"] if event.cause != "first_call" else []
    phases = ", ".join(f"{name.replace('_', ' ')} {duration(value)}" for name, value in event.phases.items() if value)
    told = ", ".join(part for part in (event.where, phases if each.count == 1 else "") if part)
    name = f"`{short(event.function)}`{' (operation)' if event.eager and event.function != EAGER else ''}"
    cells = (name, event.cause, *((event.cache,) if cached else ()), number(each.count), duration(each.seconds))
    return Row(cells, [*notes, *([told] if told else [])])


def _memory(found: CellMemory | None) -> Iterator[Block]:
    if found is None or not found.devices:
        return
    yield Heading("Memory")
    rows = []
    for device in found.devices:
        in_use = device.in_use_bytes
        rows.append(Row((
            device.device, _change(*device.array_bytes), "" if in_use is None else _change(*in_use),
            size(device.peak_bytes) if device.peak_bytes else "",
        )))  # fmt: skip
    yield without_empty(Table(("device", "live arrays", "in use", "new peak"), rows))
    if found.grown:
        yield Heading("New arrays, largest groups first")
        yield groups(found.grown)


def _change(before: int, after: int) -> str:
    if before == after:
        return f"{size(after)}, unchanged"
    sign = "+" if after > before else "−"
    return f"{size(before)} → {size(after)} ({sign}{size(abs(after - before))})"


def _findings(shown: Cell) -> Iterator[Block]:
    if shown.findings:
        yield Heading("Findings")
        yield from entries(shown.findings)
