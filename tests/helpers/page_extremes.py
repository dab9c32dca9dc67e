"""Facts that try the layout: all panels at once, names without an end and huge figures, and very many functions."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from helpers.page_facts import NOW, compilation, events, finding, function, lookup, lookups, process, rich, totals
from helpers.page_input_facts import AHEAD, FAST, LINES, SLOW, TRAIN, WALL, WATCHED
from helpers.page_memory_facts import capture, died, full_gpu, groups
from helpers.page_profile_facts import PROFILE
from helpers.page_request_facts import PREDICT
from jaxobs.facts.compilations import CAUSES, Change, Compilation
from jaxobs.facts.events import Event
from jaxobs.facts.memory import headroom
from jaxobs.facts.snapshot import Snapshot

LONG = "module_with_a_very_long_name." * 6 + "function_whose_name_has_no_place_to_break_" * 5
TEXTS = {
    "name", "function", "subject", "summary", "advice", "evidence", "last_reason", "program", "hostname", "platform",
    "device_kind", "where", "call_site", "library_site", "site", "route", "sharding", "directory", "reason", "path",
    "before", "after", "key", "uncached_detail", "notes", "mfu_unknown", "thread",
    "operation", "scope", "source", "line",
}  # fmt: skip
"""Fields whose texts come from the program or grow with it."""
MOMENTS = {
    "time", "started", "since", "ended", "last_compiled", "sequence", "sequences", "last_sequence", "pid", "recent",
    "history",
}  # fmt: skip
"""Fields whose figures are no amounts."""

FOUND = replace(TRAIN, name="found", found=True, mfu=None, mfu_unknown="Its peak is unknown.", lines=LINES)


def everything() -> Snapshot:
    """A process with something in every panel."""
    base = died()
    tight = full_gpu(3, groups())
    devices = tuple(tight if each.device == "gpu:3" else each for each in base.devices)
    return replace(
        base, devices=devices, headroom=headroom(devices), findings=(*rich().findings, *base.findings),
        in_progress=rich().in_progress, loops=(TRAIN, FOUND), wall=WALL, profile=PROFILE, inputs=(SLOW, FAST, AHEAD),
        watched=WATCHED, routes=(PREDICT,), requests_in_flight=3,
    )  # fmt: skip


def all_events() -> list[Event]:
    """Compilations of each kind, cache lookups, and a capture."""
    return [*events(), *lookups(), capture(2000)]


def stretched(value: Any, field: str = "") -> Any:
    """Returns the facts with long texts and a million times as much of everything."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {
            each.name: stretched(getattr(value, each.name), each.name)
            for each in dataclasses.fields(value)
            if each.init
        }
        return replace(value, **changed)
    if isinstance(value, str):
        return f"{value}{LONG}" if field in TEXTS and value else value
    if isinstance(value, bool) or field in MOMENTS:
        return value
    if isinstance(value, int | float):
        return value * 1_000_003
    if isinstance(value, Mapping):
        return {name: stretched(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return tuple(stretched(each, field) for each in value)
    return value


def poisoned(value: Any, text: str) -> Any:
    """Returns the facts with this text in place of each text and name, except for kinds of findings and phases."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        given = {each.name: getattr(value, each.name) for each in dataclasses.fields(value) if each.init}
        return replace(value, **{n: v if n in ("finding", "phases") else poisoned(v, text) for n, v in given.items()})
    if isinstance(value, str):
        return text
    if isinstance(value, Mapping):
        inside = {name: poisoned(each, text) for name, each in value.items()}
        return inside | dict.fromkeys((text, "__proto__") if inside else (), next(iter(inside.values()), None))
    if isinstance(value, list):
        return [*(poisoned(each, text) for each in value), text, None]
    return tuple(poisoned(each, text) for each in value) if isinstance(value, tuple) else value


def hostile() -> Snapshot:
    """`everything`, stretched."""
    given = everything()
    return replace(stretched(given), process=replace(process(), program=LONG, hostname=LONG), time=NOW)


def hostile_events() -> list[Event]:
    """Compilations with long texts."""
    return [_stretched(each) for each in (*events(), *lookups())]


def _stretched(event: Event) -> Event:
    long = stretched(event)
    return replace(long, phases=event.phases) if isinstance(event, Compilation) else long


def many(functions: int = 500) -> Snapshot:
    """A process with so many functions, each of its own kind, and a finding about every tenth."""
    made = tuple(
        function(
            f"package_{number % 17}.module_{number % 5}.Layer{number}.__call__",
            calls=number * 37,
            seconds=0.01 * (number * 7919 % 1000) + 0.01,
            first_call=1,
            **{CAUSES[1 + number % (len(CAUSES) - 1)]: {"miss": number % 23, "hit": number % 3}},
        )
        for number in range(functions)
    )
    found = tuple(
        finding(
            "unbounded_shapes", made[number].name, id=f"many-{number}", seconds=float(number), sequences=(number + 1,)
        )
        for number in range(0, functions, 10)
    )
    return replace(everything(), functions=made, phases=totals(made), findings=found)


def many_events(number: int = 5_000, functions: int = 500) -> list[Event]:
    """Returns compilations, every third one eager, with the cache's lookup of each fifth."""
    made: list[Event] = []
    for sequence in range(1, number + 1):
        rows, layer = sequence % 512 + 1, sequence % functions
        each = compilation(
            sequence,
            f"package_{layer % 17}.module_{layer % 5}.Layer{layer}.__call__",
            time=NOW - 3600 + 3600 * sequence / number,
            cause=CAUSES[sequence % len(CAUSES)],
            eager=sequence % 3 == 0,
            reason=f"`batch['image']` float32[{rows},128] -> float32[{rows + 1},128]. Pad it to one size.",
            changes=(Change("batch['image']", "shape", f"float32[{rows},128]", f"float32[{rows + 1},128]"),),
        )
        if sequence % 5 == 0:
            made.append(lookup(each, reason="Other flags.", differs=("flags",)))
        made.append(each)
    return made
