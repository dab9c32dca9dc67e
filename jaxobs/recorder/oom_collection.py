"""Collection of an out-of-memory report: read at once, piece by piece, and for a bounded time.

What hangs costs itself and what comes after it, not the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jaxobs import internals
from jaxobs.base import threads
from jaxobs.base.guard import guarded
from jaxobs.facts.compilations import Compilation
from jaxobs.recorder import host, moment
from jaxobs.state.store import Store

WAIT_SECONDS = 1.8
"""How long a program that has just run out of memory, or ends, waits for its report."""


def in_time(work: Callable[[], object], name: str) -> None:
    """Does a piece of work on a thread of its own and waits for it, but not for long."""
    done = threads.Event()

    def run() -> None:
        try:
            with guarded(name):
                work()
        finally:
            done.set()

    try:
        threads.Thread(target=run, name=f"jaxobs-{name}").start()
    except (RuntimeError, MemoryError):  # the interpreter is finalizing, or there is no room for a stack
        run()
    done.wait(WAIT_SECONDS)


def collected(store: Store, function: str, at_site: Compilation | None) -> dict[str, Any]:
    """Fields of `OutOfMemory`: what is known at this moment, or what of it could be read in time."""
    found: dict[str, Any] = {}
    in_time(lambda: _collect(store, found, function, at_site), "out-of-memory")
    return dict(found)


def _collect(store: Store, found: dict[str, Any], function: str, at_site: Compilation | None) -> None:
    with guarded("flight_recorder.host"):
        found["flags"], found["host"] = moment.flags(), host.memory()
        found["versions"], found["accelerators"] = store.snapshot_versions(), store.snapshot_accelerators()
    with guarded("flight_recorder.before"):
        events = compilations(store)
        found["compilations"], found["samples"] = moment.compilations(events), moment.samples(store)
        program = at_site or next((each for each in reversed(events) if each.function == function), None)
        if program is not None:
            found["program"] = dict(program.memory or _programs(store).get(program.function, {}))
            found["program_flops"] = program.flops
    on_devices: dict[str, tuple[int, int]] = {}
    with guarded("flight_recorder.arrays"):
        groups = moment.arrays()
        on_devices = moment.held(groups)
        groups = groups[: moment.MOST_GROUPS]
        found.update(arrays=tuple(groups), array_shares=moment.shares(groups, on_devices))
    with guarded("flight_recorder.devices"):
        found["devices"] = tuple(moment.devices(on_devices))


def compilations(store: Store) -> list[Compilation]:
    """The compilations that are still known, oldest first."""
    return [each for each in store.events(kind="compilation")[0] if isinstance(each, Compilation)]


def compiled_at(store: Store, site: str | None, program: str | None) -> Compilation | None:
    """The latest program that the failing call may have run: that of its name, or one compiled at its line."""
    seen = list(reversed(compilations(store)))
    named = [each for each in seen if program is not None and each.function.rpartition(".")[2] == program]
    there = [each for each in seen if site is not None and each.call_site == site]
    # One line may run many operations; the function that it calls is what was compiled there.
    functions = [each for each in there if not each.eager]
    return next(iter([*named, *functions, *there]), None)


def of_size(store: Store, wanted: int | None) -> Compilation | None:
    """Returns the only function whose program has outputs or temporaries of the wanted size."""
    if not wanted:
        return None
    programs = _programs(store)
    fits = {function for function, memory in programs.items() if wanted in (memory.get("output"), memory.get("temp"))}
    if len(fits) != 1:
        return None
    return next((each for each in reversed(compilations(store)) if each.function in fits), None)


def _programs(store: Store) -> dict[str, Mapping[str, int]]:
    """Returns the bytes that the latest program of each function needs, by section."""
    if store.catch_up is not None:
        with guarded("flight_recorder.programs"):
            store.catch_up()
    rows = store.snapshot(fresh=False).functions
    return {row.name: row.program.memory for row in rows if row.program is not None}


def device_of(ordinal: int | None) -> str | None:
    """The device of that number among those of this process."""
    if ordinal is None:
        return None
    for client in reversed(internals.clients()):
        local = client.local_devices()
        if client.platform != "cpu" and ordinal < len(local):
            return f"{local[ordinal].platform}:{local[ordinal].id}"
    return None
