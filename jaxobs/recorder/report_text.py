"""How the flight recorder's text files are laid out: facts, sections, wrapped sentences, and a device as one line."""

import textwrap
from collections.abc import Iterator, Sequence

from jaxobs.facts.accelerators import AcceleratorState
from jaxobs.facts.memory import DeviceMemory
from jaxobs.recorder.oom_texts import human

WIDTH = 110
MOST_PROCESSES = 8


def fact(name: str, value: str | None) -> Iterator[str]:
    """A named fact of the head; nothing if it is not known."""
    if value:
        yield from wrapped(value, f"{name + ':':<14}")


def section(title: str, lines: Sequence[str]) -> Iterator[str]:
    """A titled part; nothing where there is nothing to tell."""
    if lines and any(lines):
        yield ""
        yield title
        yield from (f"  {line}" for line in lines)


def wrapped(sentence: str, lead: str) -> list[str]:
    """A sentence in lines of the text's width, the later ones under the first."""
    return textwrap.wrap(
        sentence, WIDTH, initial_indent=lead, subsequent_indent=" " * len(lead), break_on_hyphens=False,
        break_long_words=False,
    )  # fmt: skip


def device_line(device: DeviceMemory) -> str:
    """A device's memory as JAX's allocator and the live arrays tell it."""
    told = (
        ("in use", device.in_use_bytes),
        ("peak", device.peak_bytes),
        ("limit", device.limit_bytes),
        ("reserved", device.reserved_bytes),
        ("largest free block", device.largest_free_block_bytes),
        ("live arrays", device.live_array_bytes),
    )
    parts = [f"{name} {human(size)}" for name, size in told if size is not None]
    count = [] if device.live_arrays is None else [f"{device.live_arrays:,} array{'s' * (device.live_arrays != 1)}"]
    return f"{device.device:<8} {', '.join(parts + count)}"


def accelerator_line(state: AcceleratorState) -> str:
    """A device as its driver saw it, with the processes on it."""
    told = (("in use", state.memory_used_bytes), ("of", state.memory_total_bytes))
    parts = [" ".join(f"{name} {human(size)}" for name, size in told if size is not None)]
    parts += [f"{state.utilization:.0%} busy"] if state.utilization is not None else []
    for holder in (state.processes or ())[:MOST_PROCESSES]:
        who = "this process" if holder.ours else f"pid {holder.pid}"
        parts.append(who if holder.bytes is None else f"{who} {human(holder.bytes)}")
    parts += [state.trouble] if state.trouble else []
    return f"{state.device:<8} {', '.join(part for part in parts if part)}"
