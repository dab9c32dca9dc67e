"""A compilation: why, every change, where, how long, the cache, and the program that came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxobs.facts.cache import CacheLookup
from jaxobs.facts.compilations import PHASES, Change, Compilation
from jaxobs.facts.functions import MEMORY_SECTIONS
from jaxobs.views.terminal import Overview, Surface
from jaxobs.views.terminal.lines import Line
from jaxobs.views.terminal.text import clock, duration, flops, program_bytes, size
from jaxobs.views.top.prose import bullets, facts, part, text


def compilation(view: Overview, event: Compilation, surface: Surface) -> list[Line]:
    """All that its event says."""
    return [
        *text(event.reason.removeprefix(f"`{event.function}`: "), surface),
        [],
        *facts(_about(event), surface),
        *part("Changes from the nearest earlier signature", bullets(map(change, event.changes), surface)),
        *part("Program", facts(program_facts(event.flops, event.bytes_accessed, event.memory), surface)),
        *part("Persistent cache", facts(_cache(event, view.lookups), surface)),
    ]


def change(each: Change) -> str:
    """`batch['image']: float32[128,8,8] to float32[5,8,8] (shape)`."""
    return f"{each.path or each.what}: {each.before} to {each.after}{f' ({each.what})' if each.path else ''}"


def phases(seconds: Mapping[str, float]) -> str:
    """`trace 120 ms, lower 60 ms, compile 800 ms`."""
    return ", ".join(f"{each.replace('_', ' ')} {duration(seconds[each])}" for each in PHASES if each in seconds)


def program_facts(operations: float | None, accessed: float | None, memory: Mapping[str, int]) -> list[tuple[str, str]]:
    """Cost of one execution of a program, by the compiler's analysis."""
    sections = ", ".join(f"{each} {size(memory[each])}" for each in MEMORY_SECTIONS if memory.get(each))
    total = size(program_bytes(memory))
    return [
        ("Memory", f"{total} on each device: {sections}" if total else ""),
        ("Operations", flops(operations)),
        ("Data moved", size(None if accessed is None else int(accessed))),
    ]


def _about(event: Compilation) -> list[tuple[str, str]]:
    return [
        ("Function", event.function),
        ("Cause", event.cause + (f", transformation `{event.transform}`" if event.transform else "")),
        ("Call site", event.call_site or ""),
        ("In a library", event.library_site or ""),
        ("Time", clock(event.time, "%Y-%m-%d %H:%M:%S")),
        ("Took", f"{duration(sum(event.phases.values()))}: {phases(event.phases)}" if event.phases else ""),
        ("Fingerprint", event.fingerprint or ""),
        ("Event", f"number {event.sequence}" if event.sequence else ""),
    ]


def _cache(event: Compilation, lookups: Sequence[CacheLookup]) -> list[tuple[str, str]]:
    # A lookup has the function and the time of its compilation.
    asked = [each for each in lookups if (each.function, each.time) == (event.function, event.time)]
    missed = "".join(each.reason or "" for each in asked[:1])
    differs = ", ".join(name for each in asked[:1] for name in each.differs)
    return [
        ("Result", event.cache),
        ("Not stored", event.uncached_detail or (event.uncached_because or "").replace("_", " ")),
        ("Missed", missed),
        ("Key differs", differs),
    ]
