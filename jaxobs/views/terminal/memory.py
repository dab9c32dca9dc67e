"""Device memory: what is in use of what there is, what it is in use for, and the arrays that hold the most of it."""

from collections.abc import Sequence

from jaxobs.facts.accelerators import AcceleratorState
from jaxobs.facts.memory import Account, ArrayGroup, DeviceMemory, DeviceState
from jaxobs.facts.snapshot import Snapshot
from jaxobs.views.terminal.lines import Column, Line, Surface, heading, length, plain, row
from jaxobs.views.terminal.text import bar, number, size, spark


def devices(snapshot: Snapshot, surface: Surface, most: int | None) -> list[Line]:
    """Table of devices: memory in use of what there is, or live arrays if nothing else is reported."""
    known = sorted(snapshot.devices, key=lambda each: (each.platform, each.id))
    shown = known if most is None or len(known) <= most else known[: most - 1]
    label = max((len(each.device) for each in shown), default=0)
    rows = [_memory_row(each, label, surface) for each in shown]
    if len(shown) < len(known):
        fullest = max(known[len(shown) :], key=lambda each: _fraction(each.memory))
        rows.append(
            plain(
                f" {len(known) - len(shown)} more; the fullest is {fullest.device}, "
                f"{_fraction(fullest.memory):.0%} in use", "dim",
            )
        )  # fmt: skip
    return rows


def _fraction(memory: DeviceMemory | None) -> float:
    if memory is None or memory.in_use_bytes is None or not memory.limit_bytes:
        return 0.0
    return memory.in_use_bytes / memory.limit_bytes


def _memory_row(device: DeviceState, label: int, surface: Surface) -> Line:
    known, glyphs = device.memory, surface.glyphs
    line: Line = [(f" {surface.safe(device.device):<{label}}  ", "name")]
    if known is None:
        return line + plain("not sampled yet", "dim")
    room = max(min((surface.width - label) // 4, 48), 8)
    values = [live if in_use is None else in_use for _, in_use, live in device.history]
    history = [float(value) for value in values if value is not None]
    if known.in_use_bytes is not None and known.limit_bytes:
        fraction = _fraction(known)
        style = "bad" if fraction >= 0.95 else "warn" if fraction >= 0.85 else "good"
        filled, empty = bar(fraction, room, glyphs)
        line += [(filled, style), (empty, "rule")]
        line += [(f"  {fraction:>4.0%}", style), (f"  {size(known.in_use_bytes)} of {size(known.limit_bytes)}", "")]
    elif known.in_use_bytes is not None:
        line += [(spark(history, room, glyphs), "good"), (f"  {size(known.in_use_bytes)} in use", "")]
    elif known.live_array_bytes is not None:
        drawn = spark(history, room, glyphs)
        line += [(f"{drawn}  " if drawn else "", "good")]
        line += [(f"{size(known.live_array_bytes)} in {_arrays(known.live_arrays)}", "")]
        return _told(line, ["the allocator reports no figures"], surface)
    else:
        return line + plain("no figures", "dim")
    more = [
        f"peak {size(known.peak_bytes)}" if known.peak_bytes else "",
        f"live arrays {size(known.live_array_bytes)}" if known.live_array_bytes else "",
        f"largest free {size(known.largest_free_block_bytes)}" if known.largest_free_block_bytes else "",
    ]
    return _told(line, more, surface)


def _arrays(count: int | None) -> str:
    return "live arrays" if count is None else f"{number(count)} live array{'s' * (count != 1)}"


def _told(line: Line, more: Sequence[str], surface: Surface) -> Line:
    """The line with as much more as its width allows."""
    for text in (each for each in more if each):
        piece = f"  {surface.glyphs.separator} {text}"
        if length(line) + len(piece) >= surface.width:
            break
        line = [*line, (piece, "dim")]
    return line


# ------------------------------------------------------------------------------------- what it is in use for


def account(snapshot: Snapshot, surface: Surface) -> list[Line]:
    """Uses of each device's memory; the parts add up."""
    known = [(each.device, each.account) for each in snapshot.devices if each.account is not None]
    if not known:
        return []
    columns = [
        Column("device", max(len(name) for name, _ in known)),
        *(Column(title, 10, right=True) for title in ("in use", "arrays", "programs", "the rest")),
    ]
    room = surface.width - 3 - sum(each.width + 2 for each in columns)
    return [heading(columns), *(_account_row(name, parts, columns, room, surface) for name, parts in known)]


def _account_row(name: str, parts: Account, columns: Sequence[Column], room: int, surface: Surface) -> Line:
    values = (parts.in_use_bytes, parts.array_bytes, parts.code_bytes, parts.gap_bytes)
    line = row(columns, [plain(surface.safe(name), "name"), *(plain(size(each), "number") for each in values)])
    if room < 12 or parts.in_use_bytes <= 0:
        return line
    filled, empty = bar(parts.array_bytes / parts.in_use_bytes, min(room, 40), surface.glyphs)
    return [*line, ("  ", ""), (filled, "good"), (empty, "rule")]


def groups(found: Sequence[ArrayGroup], surface: Surface, most: int | None) -> list[Line]:
    """The largest groups of live arrays, with the line that made most of each where it is known."""
    if not found:
        return []
    shown = found if most is None else found[: max(most - 1, 0)]
    names = [f"{each.dtype}[{','.join(map(str, each.shape))}]" for each in shown]
    columns = [Column("bytes", 9, right=True), Column("arrays", 8, right=True)]
    room = max(surface.width - 24, 16)
    longest = max((len(name) for name in names), default=0)
    columns += [
        Column("each", min(longest, max(room // 2, 10))),
        Column("where", max(room - min(longest, room // 2), 8)),
    ]
    lines = [heading(columns)]
    for name, each in zip(names, shown, strict=True):
        sites = sorted(each.call_sites, key=lambda site: -each.call_sites[site])
        where = f"{each.sharding}{f', created at {sites[0]}' if sites else ''}"
        values = [
            plain(size(each.bytes), "number"),
            plain(number(each.count), "number"),
            plain(surface.cut(name, columns[2].width), "name"),
            plain(surface.cut(where, columns[3].width), "dim"),
        ]
        lines.append(row(columns, values))
    return lines


def accelerators(states: Sequence[AcceleratorState], surface: Surface, most: int | None) -> list[Line]:
    """The devices as their driver sees them, and who has memory on them."""
    lines: list[Line] = []
    for state in states[:most]:
        who = [
            f"{'this process' if one.ours else f'pid {one.pid}'} {size(one.bytes)}".strip()
            for one in sorted(state.processes or (), key=lambda one: -(one.bytes or 0))
        ]
        used = "" if state.memory_used_bytes is None else f"{size(state.memory_used_bytes)}"
        total = "" if state.memory_total_bytes is None else f" of {size(state.memory_total_bytes)}"
        busy = "" if state.utilization is None else f"{state.utilization:.0%} busy"
        pieces = [state.device, f"{used}{total}", busy, *who, state.trouble or ""]
        lines.append(plain(f" {surface.joined(pieces, 2)}"))
    return lines
