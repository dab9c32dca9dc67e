"""Records: the time to write the record of a compilation, and to read the records back at the start of a process.

In seconds of this thread on the processor; other programs do not count.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

from benchmarks.harness import Effort, Figure, quantile, without_gc

ROUNDS = 100
LEAVES = 200


def run(effort: Effort) -> list[Figure]:
    """An event in the store and in the log, the record of a signature, and a full file of cache keys."""
    rounds = effort.rounds(ROUNDS)
    with tempfile.TemporaryDirectory() as folder, without_gc():
        return [*_event(folder, rounds), _signature(rounds), _cache_keys(folder)]


def _least(function: Callable[[], object], rounds: int) -> float:
    """Seconds that one call takes, undisturbed."""
    taken = []
    for _ in range(rounds):
        started = time.thread_time()
        function()
        taken.append(time.thread_time() - started)
    return quantile(taken, 0.2)


def _event(folder: str, rounds: int) -> list[Figure]:
    from benchmarks.full import PHASES
    from jaxobs.base.config import Settings
    from jaxobs.exporters.event_log import EventLog
    from jaxobs.facts.compilations import Change, Compilation
    from jaxobs.state.store import Store

    event = Compilation(
        time=time.time(), function="train.step", cause="shape", reason="`batch` float32[8] -> float32[9].",
        changes=(Change("batch", "shape", "float32[8]", "float32[9]"),), phases=PHASES, call_site="train.py:7",
    )  # fmt: skip
    alone, logged = Store(), Store()
    log = EventLog(logged, Settings(), os.path.join(folder, "events.jsonl"))
    figures = [
        Figure(name=name, value=_least(lambda store=store: store.record(event), rounds) * 1e6, unit="µs", limit=1000.0)  # type: ignore[misc]
        for name, store in (("an event of a compilation", alone), ("an event, with its line in the event log", logged))
    ]
    log.close()
    return figures


def _signature(rounds: int) -> Figure:
    import jax

    from jaxobs.facts.events import plain
    from jaxobs.internals import Call
    from jaxobs.reasons import recorded, signature

    def step(parameters: Any) -> None:
        """Record of one argument."""

    parameters = {f"layer_{number}": jax.ShapeDtypeStruct((8, number), "float32") for number in range(LEAVES)}
    taken = signature.take(Call(step, step, (parameters,), {}))
    assert taken is not None
    return Figure(
        name=f"the record of a signature of {LEAVES} arrays, as JSON",
        value=_least(lambda: json.dumps(plain(recorded.record(step, taken))), rounds) * 1e3,
        unit="ms",
        limit=1.0,
    )


def _cache_keys(folder: str) -> Figure:
    from jaxobs.reasons.cache_records import FILE, MOST_BYTES, KeyRecord, Sidecar

    parts = {part: f"{number:012x}" for number, part in enumerate(("program", "flags", "options"))}
    Sidecar(folder).add(
        KeyRecord(function="train.step", key=f"jit_step-{0:064x}", time=1.8e9, process="p", parts=parts)
    )
    path = os.path.join(folder, FILE)
    with open(path, "rb") as file:
        text = file.read()
    with open(path, "wb") as file:
        file.write(text * (MOST_BYTES // len(text)))
    return Figure(
        name="reading a full file of cache keys",
        value=_least(lambda: Sidecar(folder).refresh(), 5) * 1e3,
        unit="ms",
        limit=500.0,
        note=f"{MOST_BYTES // 2**20} MiB",
    )
