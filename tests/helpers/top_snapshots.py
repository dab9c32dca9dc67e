"""Snapshots for `jaxobs top`, and what an endpoint answers with one."""

from __future__ import annotations

import dataclasses
import urllib.parse
from typing import Any

from jaxobs.facts.compilations import CacheState, Change, Compilation, OpenCompilation
from jaxobs.facts.events import Event, as_event, plain
from jaxobs.facts.findings import Finding
from jaxobs.facts.functions import FunctionState, Histogram
from jaxobs.facts.memory import DeviceMemory, DeviceState
from jaxobs.facts.process import ObserverState, ProcessState
from jaxobs.facts.snapshot import Snapshot
from jaxobs.views.terminal import Connection, Overview

STARTED = 1_769_850_000.0
GIB = 2**30


def process(**changed: Any) -> ProcessState:
    """A process by hand."""
    versions = {"jaxobs": "0.1.0", "python": "3.11.2", "jax": "0.10.2", "jaxlib": "0.10.2"}
    base = ProcessState(
        pid=4711, hostname="node-7", program="train_digits.py", started=STARTED, process_index=0, process_count=1,
        versions=versions, platform="gpu",
    )  # fmt: skip
    return dataclasses.replace(base, **changed)


def device(index: int, in_use: int | None, limit: int | None, live: int = 3 * GIB) -> DeviceState:
    """A device with one sample of its memory."""
    name = f"gpu:{index}" if limit else f"cpu:{index}"
    sample = DeviceMemory(
        time=STARTED + 190, device=name, in_use_bytes=in_use, peak_bytes=in_use and in_use + GIB, limit_bytes=limit,
        live_arrays=431, live_array_bytes=live,
    )  # fmt: skip
    return DeviceState(
        device=name, id=index, platform=name.partition(":")[0], device_kind="NVIDIA H200" if limit else "cpu",
        process_index=0, memory=sample,
        history=tuple((STARTED + 5 * i, in_use, live * (i % 7 + 1) // 7) for i in range(30)),
    )  # fmt: skip


ATTENTION = "a_company_library.models.transformer.blocks.attention.MultiHeadAttention.__call__"


def snapshot(**changed: Any) -> Snapshot:
    """A training run in the middle of things."""

    def phases(trace: float, lower: float, compile: float, **more: float) -> dict[str, float]:
        return {"trace": trace, "lower": lower, "compile": compile, **more}

    functions = (
        FunctionState(
            name="__main__.train_step", calls=12_345, cache={"hit": 1, "miss": 4}, last_compiled=STARTED + 184,
            compilations={"first_call": {"miss": 1}, "shape": {"miss": 2, "hit": 1}, "dtype": {"miss": 1}},
            phase_seconds=phases(0.61, 0.32, 4.2, cache_load=0.2),
            phase_counts={"trace": 5, "lower": 5, "compile": 4, "cache_load": 1},
        ),
        FunctionState(
            name=ATTENTION, calls=7, compilations={"first_call": {"miss": 1}, "new_function": {"miss": 6}},
            phase_seconds=phases(0.2, 0.1, 0.9), cache={"miss": 7}, errors={"ValueError": 2},
            last_compiled=STARTED + 20,
        ),
        FunctionState(
            name="<eager>", compilations={"first_call": {"disabled": 41}, "unknown": {"disabled": 3}},
            phase_seconds=phases(0.02, 0.05, 0.5), last_compiled=STARTED + 2,
        ),
        *(
            FunctionState(
                name=f"__main__.helper_{index:02d}", compilations={"first_call": {"miss": 1}},
                phase_seconds=phases(0.001, 0.002, 0.01 * (index + 1)), last_compiled=STARTED + index,
            )
            for index in range(12)
        ),
    )  # fmt: skip
    base = Snapshot(
        time=STARTED + 192, process=process(), functions=functions,
        phases={"compile": Histogram((0.001, 1.0), (3, 60, 5), 7.9)},
        in_progress=(OpenCompilation("__main__.eval_step", "compile", STARTED + 179.6, "MainThread"),),
        devices=(device(0, 71 * GIB, 80 * GIB), device(1, 12 * GIB, 80 * GIB)),
        cache=CacheState(enabled=True, directory="/var/cache/jax"),
        observer=ObserverState(installed=True, notes=("Somebody removed our listeners; they are back.",)),
        last_sequence=60,
    )  # fmt: skip
    return dataclasses.replace(base, **changed)


REASON = (
    "`batch['image']` was float32[128,8,8] and is float32[5,8,8] now: pad the last batch to 128 rows, "
    "or drop it, so that every call has one shape."
)


def compilations() -> tuple[Compilation, ...]:
    """Returns the compilations of that run, oldest first."""
    eager = [
        Compilation(
            time=STARTED + 2 + index / 10, sequence=index + 1, function="add", cause="first_call",
            reason="First call of this operation.", phases={"compile": 0.01}, eager=True,
        )
        for index in range(41)
    ]  # fmt: skip
    scale = "`scale` was a Python int and is a Python float now: pass one type always, 1.0 instead of 1."
    again = "`<lambda>` at layers.py:81 is made again on each call: make it once, outside the loop."
    named = [
        ("first_call", "First call.", "miss", 10.0, "__main__.train_step"),
        ("shape", REASON, "miss", 21.0, "__main__.train_step"),
        ("dtype", scale, "miss", 60.0, "__main__.train_step"),
        ("new_function", again, "hit", 184.0, ATTENTION),
    ]
    later = [
        Compilation(
            time=STARTED + moment, sequence=50 + index, pid=4711, function=function, cause=cause, reason=reason,
            changes=(Change("batch['image']", "shape", "float32[128,8,8]", "float32[5,8,8]"),),
            phases={"trace": 0.12, "lower": 0.06, "compile": 0.8}, cache=cache, call_site="train_digits.py:61",
        )
        for index, (cause, reason, cache, moment, function) in enumerate(named)
    ]  # fmt: skip
    return (*eager, *later)


class CannedEndpoint:
    """An endpoint that serves the facts it is given, as the real one does."""

    def __init__(self, state: Snapshot, events: tuple[Event, ...] = ()) -> None:
        self.state, self.events = state, events
        self.asked: list[str] = []

    def answer(self, target: str) -> Any:
        """The JSON of one GET; None for an unknown path."""
        self.asked.append(target)
        parts = urllib.parse.urlsplit(target)
        query = dict(urllib.parse.parse_qsl(parts.query))
        if parts.path == "/api/v1/snapshot":
            return plain(self.state)
        if parts.path == "/api/v1/events":
            since, kind = int(query.get("since", 0)), query.get("kind")
            told = [e for e in self.events if e.sequence > since and kind in (None, e.kind)]
            return {"events": [as_event(e) for e in told], "next": self.state.last_sequence, "dropped": 0}
        return None


URL = "http://127.0.0.1:9464"


def overview(**changed: Any) -> Overview:
    """Returns what `jaxobs top` shows of that run."""
    known = {"snapshot": snapshot(), "connection": Connection(url=URL, interval=1.0), "compilations": compilations()}
    return Overview(**(known | {"rates": {"__main__.train_step": 43.21}} | changed))


def finding(index: int, **changed: Any) -> Finding:
    """A finding by hand; the higher its number, the more it costs."""
    known = {"function": f"__main__.decode_{index}", "count": 17, "seconds": 10.0 + index, "sequences": (51,)}
    known["summary"] = f"Dimension 1 of `cache` has taken 17 sizes from 128 to 4,096, each compiles `decode_{index}`."
    known["advice"] = "Pad it to powers of two (512, 1,024, 2,048, 4,096)."
    known |= {"time": STARTED + 180, "since": STARTED + 21, "id": f"unbounded_shapes-{index}"}
    return Finding(**({"finding": "unbounded_shapes"} | known | changed))
