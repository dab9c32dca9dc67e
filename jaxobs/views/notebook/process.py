"""A snapshot as blocks: the verdict, where the time went, the functions that cost most, and memory."""

from collections.abc import Iterator, Mapping

from jaxobs.facts.functions import FunctionState
from jaxobs.facts.memory import ArrayGroup
from jaxobs.facts.snapshot import Snapshot
from jaxobs.views.notebook.blocks import Bar, Block, Heading, Row, Say, Table
from jaxobs.views.notebook.text import verdict
from jaxobs.views.terminal.text import UNICODE, causes, duration, number, short, size
from jaxobs.views.terminal.wall import parts

MOST_FINDINGS = 3
MOST_FUNCTIONS = 8
MOST_GROUPS = 10


def snapshot(shown: Snapshot) -> list[Block]:
    """The whole in short."""
    blocks: list[Block] = [] if shown.verdict is None else verdict(shown.verdict, MOST_FINDINGS)
    if shown.wall is not None:
        blocks += seconds("Where the time went", parts(shown.wall))
    return [*blocks, *_table(shown, MOST_FUNCTIONS), *_devices(shown), _process(shown)]


def functions(shown: Snapshot) -> list[Block]:
    """All of them."""
    return list(_table(shown, len(shown.functions)))


def seconds(label: str, spent: Mapping[str, float]) -> Iterator[Block]:
    """A bar of the seconds by category."""
    if spent:
        yield Bar(label, [(name.replace("_", " "), value, duration(value)) for name, value in spent.items()])


def _table(shown: Snapshot, most: int) -> Iterator[Block]:
    order = sorted(shown.functions, key=lambda each: (-sum(each.phase_seconds.values()), each.name))
    if not order:
        yield Say("Nothing has compiled yet.", tone="quiet")
        return
    yield Heading("Functions")
    counted = any(each.calls is not None for each in order)
    titles = ("function", *((">calls",) if counted else ()), ">compiled", ">seconds", "why")
    yield Table(titles, [_function(each, counted) for each in order[:most]])
    if len(order) > most:
        rest = order[most:]
        cost = sum(sum(each.phase_seconds.values()) for each in rest)
        compiled = sum(each.compiled for each in rest)
        yield Say(f"{len(rest)} more: {number(compiled)} compilations, {duration(cost)}.", tone="quiet")


def _function(each: FunctionState, counted: bool) -> Row:
    counts = {cause: sum(by_cache.values()) for cause, by_cache in each.compilations.items()}
    why = " ".join(told for _, told in causes(counts, 60, UNICODE))
    calls = (number(each.calls),) if counted else ()
    return Row(
        (f"`{short(each.name)}`", *calls, number(each.compiled), duration(sum(each.phase_seconds.values())), why)
    )


def _devices(shown: Snapshot) -> Iterator[Block]:
    rows = []
    for device in shown.devices:
        memory = device.memory
        if memory is not None and (memory.in_use_bytes or memory.live_array_bytes):
            sizes = (memory.live_array_bytes, memory.in_use_bytes, memory.peak_bytes, memory.limit_bytes)
            rows.append(Row((device.device, *map(size, sizes))))
    if rows:
        yield Heading("Memory")
        yield without_empty(Table(("device", ">live arrays", ">in use", ">peak", ">limit"), rows))


def memory(shown: Snapshot) -> list[Block]:
    """The devices, and the largest groups of live arrays as last sampled."""
    blocks = list(_devices(shown))
    if not shown.array_groups:
        return [*blocks, Say("No live arrays seen yet.", tone="quiet")]
    return [*blocks, Heading("Largest groups of live arrays"), groups(shown.array_groups[:MOST_GROUPS])]


def groups(shown: tuple[ArrayGroup, ...]) -> Table:
    """Groups of live arrays, with the lines that made them where they are known."""
    return Table((">bytes", ">arrays", "shape", "type", "on"), [_group(each) for each in shown])


def _group(each: ArrayGroup) -> Row:
    made = ", ".join(each.call_sites)
    shape = "×".join(map(str, each.shape)) or "scalar"
    return Row(
        (size(each.bytes), number(each.count), shape, each.dtype, each.sharding), [f"Created at {made}"] if made else []
    )


def without_empty(table: Table) -> Table:
    """The table without columns that say nothing."""
    kept = [place for place in range(len(table.titles)) if any(row.cells[place] for row in table.rows)]
    rows = [Row([row.cells[place] for place in kept], row.notes) for row in table.rows]
    return Table([table.titles[place] for place in kept], rows)


def _process(shown: Snapshot) -> Say:
    process = shown.process
    versions = ", ".join(f"{name} {process.versions[name]}" for name in ("jax", "jaxobs") if name in process.versions)
    told = [
        process.program or "python", f"pid {process.pid}", f"up {duration(shown.time - process.started)}",
        process.platform or "", versions,
    ]  # fmt: skip
    return Say(", ".join(each for each in told if each), tone="quiet")
