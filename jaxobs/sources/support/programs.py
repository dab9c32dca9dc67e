"""Compiled programs: whether one will fit, told before its first call, and later what it consists of.

The sizes come with the compilation. What the optimised program consists of is read on the slow tick, a few small
programs or one large one at a time, from the executable if it is still loaded then: nothing is kept alive for it, and
nothing recompiled.
"""

import hashlib
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from jaxobs import internals
from jaxobs.base import threads
from jaxobs.base.guard import guarded
from jaxobs.facts.compilations import Compilation
from jaxobs.facts.findings import Finding
from jaxobs.facts.functions import needed
from jaxobs.internals.hlo import products as hlo_products
from jaxobs.internals.hlo import text as hlo_text
from jaxobs.recorder.oom_texts import human
from jaxobs.state.store import Store
from jaxobs.state.utilization import ProgramFlops

NAME = "program_may_not_fit"

MOST_PENDING = 64
"""Programs that wait to be read; the oldest is given up first."""
MOST_TOLD = 256
READING_SECONDS = 0.02
"""Seconds of the thread's own time after which the rest waits for the next tick."""


@dataclass(frozen=True, slots=True)
class _Pending:
    number: int
    """The executable's `id`."""
    fingerprint: Any
    """The executable's own, to know it by when its number was given to another."""
    compiled: float
    costs_known: bool


class Programs:
    """Takes in executables as they are loaded. Safe for threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        store.catch_up = self.catch_up
        # Reentrant: a signal handler of the program may compile while this thread is in here.
        self._lock = threads.RLock()
        self._pending: OrderedDict[str, _Pending] = OrderedDict()
        self._told: OrderedDict[str, Finding] = OrderedDict()

    def loaded(self, event: Compilation, executable: Any) -> None:
        """A program was compiled or loaded, and has not been called yet; operations by themselves are passed over."""
        if executable is None or event.eager:
            return
        with guarded("program_may_not_fit"):
            self._warn(event, executable)
        pending = _Pending(id(executable), getattr(executable, "fingerprint", None), event.time, bool(event.memory))
        with self._lock:
            if event.transform is None or event.function not in self._pending:
                self._pending[event.function] = pending
                self._pending.move_to_end(event.function)
            if len(self._pending) > MOST_PENDING:
                self._pending.popitem(last=False)
                self._store.drop("programs_unread")

    def sample(self) -> None:
        """Reads programs that wait, the latest first, for a short time; those that are gone are passed over."""
        began = time.thread_time()
        while self._pending and time.thread_time() - began < READING_SECONDS:
            with self._lock:
                function, pending = self._pending.popitem()
            executable = _find(pending)
            if executable is not None:
                self._read(function, pending, executable)

    def catch_up(self) -> None:
        """Asks at once what the programs that wait cost, for who cannot wait for the tick."""
        with self._lock:
            waiting = [(function, each) for function, each in self._pending.items() if not each.costs_known]
        for function, pending in waiting:
            executable = _find(pending)
            if executable is not None:
                costs = _costs(executable)
                self._store.set_program(function, pending.compiled, **costs)
                self._store.part(ProgramFlops).learn(function, pending.compiled, costs["flops"])

    def _read(self, function: str, pending: _Pending, executable: Any) -> None:
        kinds: dict[str, int] = {}
        collectives: dict[str, int] = {}
        missing: float | None = 0.0
        for text in internals.executables.optimised(executable):
            for total, of_text in zip((kinds, collectives), hlo_text.read(text), strict=True):
                for key, number in of_text.items():
                    total[key] = total.get(key, 0) + number
            more = hlo_products.left_out(text)
            missing = None if missing is None or more is None else missing + more
        found: dict[str, Any] = {}
        if kinds:
            found |= {"instructions": kinds, "collective_bytes": collectives}
        else:
            self._store.drop("programs_unread")
        costs = _costs(executable)
        if not pending.costs_known:
            found |= costs
        if kinds and missing is not None and (costs["flops"] is not None or missing):
            found["all_flops"] = (costs["flops"] or 0.0) + missing
        self._store.set_program(function, pending.compiled, **found)
        self._store.part(ProgramFlops).learn(function, pending.compiled, costs["flops"])

    def _warn(self, event: Compilation, executable: Any) -> None:
        wanted = needed(event.memory)
        if not wanted:
            return
        left = [found for device in internals.executables.devices(executable) if (found := _left(device)) is not None]
        if not left:
            return
        bytes_left, limit, name = min(left)
        if wanted <= bytes_left:
            return
        self._store.record(self._finding(event, wanted, bytes_left, limit, name))

    def _finding(self, event: Compilation, wanted: int, left: int, limit: int, device: str) -> Finding:
        digest = hashlib.sha256(f"{NAME} {event.function}".encode()).hexdigest()[:12]
        temp, output, alias = (event.memory.get(section, 0) for section in ("temp", "output", "alias"))
        advice = (
            "Free arrays first, or donate the arguments that the outputs replace (donate_argnums); "
            if output > alias and output - alias >= temp
            else "Reduce its temporaries: a smaller batch or microbatches, jax.checkpoint, bfloat16; "
        ) + "shard over more devices, or free what is not needed."
        with self._lock:
            before = self._told.pop(f"{NAME}-{digest}", None)
            finding = Finding(
                time=time.time(),
                id=f"{NAME}-{digest}",
                finding=NAME,
                function=event.function,
                subject=device,
                summary=(
                    f"`{event.function}` needs {human(wanted)} besides its arguments, but {device} has only "
                    f"{human(left)} left of {human(limit)}: its next call may run out of memory."
                ),
                advice=advice,
                count=1 + (before.count if before is not None else 0),
                seconds=sum(event.phases.values()) + (before.seconds if before is not None else 0.0),
                since=before.since if before is not None else event.time,
                evidence=(
                    f"According to the compiler: temp {human(temp)}, output {human(output)}, of which {human(alias)} "
                    "reuse donated arguments.",
                ),
                sequences=(event.sequence,),
                data={"needed_bytes": wanted, "left_bytes": left, "limit_bytes": limit, "device": device},
            )
            self._told[finding.id] = finding
            if len(self._told) > MOST_TOLD:
                self._told.popitem(last=False)
        return finding


def _costs(executable: Any) -> dict[str, Any]:
    flops, accessed = internals.executables.cost(executable)
    return {"flops": flops, "bytes_accessed": accessed, "memory": internals.executables.memory(executable)}


def _find(pending: _Pending) -> Any:
    for client in internals.clients():
        executable = internals.executables.still_loaded(client, pending.number)
        if executable is not None and getattr(executable, "fingerprint", None) == pending.fingerprint:
            return executable
    return None


def _left(device: Any) -> tuple[int, int, str] | None:
    """Bytes left and limit of a device, by its allocator; None where it reports none or cannot be asked."""
    try:
        told = internals.allocator(device)
    except internals.UNTOLD:
        return None
    limit, in_use = told.get("limit_bytes"), told.get("in_use_bytes")
    if not limit or in_use is None:
        return None
    return limit - in_use, limit, internals.device_name(device)
