"""One out-of-memory report as a text for a person: what to do first, then what it is drawn from."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from jaxobs.facts import DeviceMemory, OutOfMemory, timestamp
from jaxobs.oom_causes import groups
from jaxobs.oom_texts import human

WIDTH = 110

_STAGES = {
    "start": "while JAX took the device",
    "compile": "while it was compiled",
    "load": "while its program was loaded onto the device",
    "run": "while it ran",
    "allocate": "while an array was made",
    "unknown": "",
}


def text(event: OutOfMemory) -> str:
    """The report, ending in a newline."""
    return "\n".join(_lines(event)) + "\n"


def _lines(event: OutOfMemory) -> Iterator[str]:
    yield f"Out of memory: {event.function} {_STAGES[event.stage]}".rstrip()
    yield f"{timestamp(event.time)}, process {event.process_index}, pid {event.pid}"
    yield ""
    yield from _fact("error", f"{event.error}: {event.message.splitlines()[0] if event.message else ''}")
    for name, size in _sizes(event):
        yield from _fact(name, human(size) if size < 1024 else f"{human(size)} ({size:,} bytes)")
    yield from _fact("device", event.device)
    yield from _fact("call site", event.call_site)
    yield from _fact("called with", event.signature)
    yield ""
    yield "WHAT TO DO"
    for number, cause in enumerate(event.causes, 1):
        yield from _wrapped(f"{cause.summary} [{cause.cause}]", f"{number}. ")
        yield from _wrapped(cause.advice, "   ")
        for sentence in cause.evidence:
            yield from _wrapped(sentence, "   - ")
    yield from _section("DEVICES", [_device(each) for each in event.devices])
    host = ", ".join(f"{name} {human(size)}" for name, size in event.host.items())
    yield from _section("HOST", [host] if host else [])
    yield from _section("LARGEST GROUPS OF LIVE ARRAYS", list(_arrays(event)))
    yield from _section("WHAT THE PROGRAM NEEDS", list(_program(event)))
    yield from _section("LARGEST BUFFERS OF THE PROGRAM", list(_buffers(event)))
    yield from _section("COMPILATIONS BEFORE IT, THE LATEST FIRST", list(event.compilations))
    yield from _section("MEMORY BEFORE IT, THE LATEST FIRST", list(event.samples))
    yield from _section("FLAGS", [f"{name}={value}" for name, value in event.flags.items()])
    yield from _section("VERSIONS", [", ".join(f"{name} {value}" for name, value in event.versions.items())])
    if len(event.message.splitlines()) > 1:
        yield from _section("THE ERROR'S TEXT", event.message.splitlines())


def _fact(name: str, value: str | None) -> Iterator[str]:
    if value:
        yield from _wrapped(value, f"{name + ':':<14}")


def _sizes(event: OutOfMemory) -> Iterator[tuple[str, int]]:
    for name in ("wanted", "used", "free", "limit", "exceeded", "total"):
        size = getattr(event, f"{name}_bytes")
        if size is not None:
            yield name, size


def _wrapped(sentence: str, lead: str) -> list[str]:
    return textwrap.wrap(
        sentence, WIDTH, initial_indent=lead, subsequent_indent=" " * len(lead), break_on_hyphens=False,
        break_long_words=False,
    )  # fmt: skip


def _section(title: str, lines: list[str]) -> Iterator[str]:
    if lines and any(lines):
        yield ""
        yield title
        yield from (f"  {line}" for line in lines)


def _device(device: DeviceMemory) -> str:
    told = (
        ("in use", device.in_use_bytes),
        ("peak", device.peak_bytes),
        ("limit", device.limit_bytes),
        ("reserved", device.reserved_bytes),
        ("largest free block", device.largest_free_block_bytes),
        ("live arrays", device.live_array_bytes),
    )
    parts = [f"{name} {human(size)}" for name, size in told if size is not None]
    count = [] if device.live_arrays is None else [f"{device.live_arrays:,} arrays"]
    return f"{device.device:<8} {', '.join(parts + count)}"


def _arrays(event: OutOfMemory) -> Iterator[str]:
    for each in groups(event):
        where = f"{each.devices} devices, replicated" if each.replicated else f"{each.devices} devices"
        place = each.sharding if each.devices < 2 else f"{each.sharding}, {where}"
        yield f"{human(each.bytes):>10} {each.share:>5.0%} {each.count:>7,} x {each.shape}  {place}"


def _program(event: OutOfMemory) -> Iterator[str]:
    for source, sizes in (("by the compiler", event.program), ("by the error", event.sections)):
        if sizes:
            yield f"{source}: {', '.join(f'{name} {human(size)}' for name, size in sizes.items())}"
    if event.program_flops is not None:
        yield f"{event.program_flops:,.0f} floating-point operations"


def _buffers(event: OutOfMemory) -> Iterator[str]:
    for each in event.buffers:
        padded = "" if not each.padding else f", of which padding {human(each.padding)}"
        yield f"{human(each.size):>10}  {each.shape or '?'}  {each.operator or each.allocation or ''}{padded}"
