"""The flight recorder: whoever sees an exception shows it here; one that is out of memory becomes a report, once.

The exception is only read. The report is collected on a thread of its own, for which the program waits two seconds at
most, then recorded as an `out_of_memory` event and written as a text file.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import FrameType, TracebackType
from typing import Any

from jaxobs import internals, moment, oom_causes, oom_report, oom_texts
from jaxobs import signature as signatures
from jaxobs.facts import EAGER, Compilation, Error, OutOfMemory
from jaxobs.guard import guard, guarded
from jaxobs.internals import Call
from jaxobs.internals.source_files import is_jax, is_plumbing
from jaxobs.oom_texts import OomText
from jaxobs.store import Store

WAIT_SECONDS = 1.8
"""How long a program that has just run out of memory waits for its report."""
BURST = 3
REFILL_SECONDS = 10.0
"""Full reports in a row, and time until there is one more: programs that try sizes out run out of memory often."""
MOST_FILES = 10
MOST_FILES_IN_DIRECTORY = 100
MOST_MESSAGE = 4000
MOST_ERROR_MESSAGE = 2000
MOST_LEAVES = 12
PREFIX = "out-of-memory-"
UNKNOWN = "<unknown>"

_MOST_CHAINED = 8
_MOST_KNOWN = 64
_SAME_SECONDS = 10.0
_LIBRARIES = ("jax", "jaxlib", "numpy", "tensorflow")
"""Packages whose exceptions may make their text themselves: nobody else's `__str__` is run."""


@dataclass(slots=True)
class Seen:
    """Who saw an exception, and what that place knows. Live objects: read at once, not kept."""

    function: str | None = None
    call: Call | None = None
    call_site: str | None = None
    stage: str | None = None
    """The stage, where the text alone says only that an array was not allocated."""


class FlightRecorder:
    """Turns exceptions of one process into reports. Safe for threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.after_fork()

    def after_fork(self) -> None:
        """In a forked child: nothing was seen or written yet."""
        # Reentrant: a signal handler of the program may raise while this thread is in here.
        self._lock = threading.RLock()
        self._known: list[tuple[Any, int, str, float]] = []
        self._ended: list[tuple[Any, int, str, float]] = []
        self._files = 0
        self._left = float(BURST)
        self._refilled = time.monotonic()

    @guard("flight_recorder")
    def saw(self, error: BaseException, seen: Seen | None = None) -> OutOfMemory | None:
        """Reports an exception that is out of memory, or that was raised from one; the first time it is shown."""
        for each in _chain(error):
            parsed = parsed_error(each)
            if parsed is None or parsed.harmless:
                continue
            if not self._is_new(each, self._known):
                return None
            return self._report(each, parsed, seen or Seen())
        return None

    @guard("flight_recorder.uncaught")
    def uncaught(self, error: BaseException) -> None:
        """Records an exception that nothing caught, once, and reports it if it is out of memory."""
        if not isinstance(error, Exception) or not self._is_new(error, self._ended):
            return
        self.saw(error)
        told = self._store.settings.static_values
        self._store.record(
            Error(
                time=time.time(), error=type(error).__name__, call_site=call_site(error),
                message=_text(error)[:MOST_ERROR_MESSAGE] if told else None,
            )
        )  # fmt: skip

    def ignore(self, error: BaseException) -> None:
        """An exception of the time before: it is not to be told."""
        with self._lock:
            self._is_new(error, self._ended)
            self._is_new(error, self._known)

    def _is_new(self, error: BaseException, known: list[tuple[Any, int, str, float]]) -> bool:
        """Whether an exception is shown for the first time. It is not kept alive: it holds frames, and these arrays."""
        now, text = time.monotonic(), _text(error)[:200]
        try:
            reference: Any = weakref.ref(error)
        except TypeError:  # a built-in type's: known by what it says, for a while
            reference = None
        with self._lock:
            for each, number, said, when in known:
                if each is None:
                    if number == id(error) and said == text and now - when < _SAME_SECONDS:
                        return False
                elif each() is error:
                    return False
            known[:] = [each for each in known if each[0] is None or each[0]() is not None][-_MOST_KNOWN:]
            known.append((reference, id(error), text, now))
        return True

    # -------------------------------------------------------------------------------------------- the report

    def _report(self, error: BaseException, parsed: OomText, seen: Seen) -> OutOfMemory:
        started = time.monotonic()
        site = seen.call_site or call_site(error)
        at_site = self._compiled_at(site, parsed.program) or self._of_size(parsed.wanted)
        function = seen.function or _function(at_site) or parsed.program or UNKNOWN
        stage = parsed.stage
        if stage == "allocate" and (seen.stage or (at_site is not None and not at_site.eager)):
            stage = seen.stage or "run"
        event = OutOfMemory(
            time=time.time(), process_index=internals.process_index_and_count()[0], pid=os.getpid(),
            function=function, stage=stage, error=type(error).__name__, message=_text(error)[:MOST_MESSAGE],
            device=_device(parsed.ordinal), call_site=site, wanted_bytes=parsed.wanted, used_bytes=parsed.used,
            free_bytes=parsed.free, limit_bytes=parsed.limit, exceeded_bytes=parsed.exceeded,
            total_bytes=parsed.total, sections=parsed.sections, buffers=parsed.buffers,
        )  # fmt: skip
        if not self._may_report():
            self._store.drop("out_of_memory_reports")
            return self._store.record(event)
        if seen.call is not None:
            with guarded("flight_recorder.signature"):
                event = replace(event, signature=describe(seen.call, self._store.settings.static_values))
        found = self._collected(function, at_site)
        event = replace(event, **found)
        device = event.device or (event.devices[0].device if len(event.devices) == 1 else None)
        event = replace(event, device=device, seconds=time.monotonic() - started)
        with guarded("flight_recorder.diagnose"):
            made = sum(isinstance(each, Compilation) for each in self._events())
            causes = oom_causes.diagnose(event, executables=made, growing=moment.growing(self._store))
            event = replace(event, causes=causes)
        return self._store.record(replace(event, report=self._write(event)))

    def _may_report(self) -> bool:
        with self._lock:
            now = time.monotonic()
            self._left = min(BURST, self._left + (now - self._refilled) / REFILL_SECONDS)
            self._refilled = now
            if self._left < 1:
                return False
            self._left -= 1
            return True

    def _collected(self, function: str, at_site: Compilation | None) -> dict[str, Any]:
        """What is known at this moment, or what of it could be read in time."""
        found: dict[str, Any] = {}
        done = threading.Event()

        def collect() -> None:
            try:
                self._collect(found, function, at_site)
            finally:
                done.set()

        try:
            threading.Thread(target=collect, name="jaxobs-out-of-memory", daemon=True).start()
        except (RuntimeError, MemoryError):  # the interpreter is finalizing, or there is no room for a stack
            collect()
        done.wait(WAIT_SECONDS)
        return dict(found)

    def _collect(self, found: dict[str, Any], function: str, at_site: Compilation | None) -> None:
        """Fills in piece by piece: what hangs costs itself and what comes after."""
        store = self._store
        with guarded("flight_recorder.host"):
            found["flags"], found["host"] = moment.flags(), moment.host()
            found["versions"] = store.snapshot_versions()
        with guarded("flight_recorder.before"):
            found["compilations"], found["samples"] = moment.compilations(self._events()), moment.samples(store)
            program = at_site or next((each for each in reversed(self._events()) if each.function == function), None)
            if program is not None:
                found["program"] = dict(program.memory or self._programs().get(program.function, {}))
                found["program_flops"] = program.flops
        on_devices: dict[str, tuple[int, int]] = {}
        with guarded("flight_recorder.arrays"):
            groups = moment.arrays()
            on_devices = moment.held(groups)
            groups = groups[: moment.MOST_GROUPS]
            found.update(arrays=tuple(groups), array_shares=moment.shares(groups, on_devices))
        with guarded("flight_recorder.devices"):
            found["devices"] = tuple(moment.devices(on_devices))

    def _events(self) -> list[Compilation]:
        return [each for each in self._store.events(kind="compilation")[0] if isinstance(each, Compilation)]

    def _compiled_at(self, site: str | None, program: str | None) -> Compilation | None:
        """The latest program that the failing call may have run: that of its name, or one compiled at its line."""
        seen = list(reversed(self._events()))
        named = [each for each in seen if program is not None and each.function.rpartition(".")[2] == program]
        there = [each for each in seen if site is not None and each.call_site == site]
        # One line may run many operations; the function that it calls is what was compiled there.
        functions = [each for each in there if not each.eager]
        return next(iter([*named, *functions, *there]), None)

    def _of_size(self, wanted: int | None) -> Compilation | None:
        """The only function with a program whose outputs or temporaries are as many bytes as were wanted.

        Where a result is waited for, its error comes out far from the call that made it.
        """
        if not wanted:
            return None
        programs = self._programs()
        fits = {
            function for function, memory in programs.items() if wanted in (memory.get("output"), memory.get("temp"))
        }
        if len(fits) != 1:
            return None
        return next((each for each in reversed(self._events()) if each.function in fits), None)

    def _programs(self) -> dict[str, Mapping[str, int]]:
        """What the latest program of each function needs, by section."""
        if self._store.catch_up is not None:
            with guarded("flight_recorder.programs"):
                self._store.catch_up()
        rows = self._store.snapshot().functions
        return {row.name: row.program.memory for row in rows if row.program is not None}

    # ---------------------------------------------------------------------------------------------- the file

    @guard("flight_recorder.file")
    def _write(self, event: OutOfMemory) -> str | None:
        """Writes the text file and returns its path; None where none is wanted or there are enough."""
        folder = self._folder()
        if folder is None:
            return None
        with self._lock:
            if self._files >= MOST_FILES:
                self._store.drop("out_of_memory_files")
                return None
            self._files += 1
            number = self._files
        os.makedirs(folder, exist_ok=True)
        if sum(name.startswith(PREFIX) for name in os.listdir(folder)) >= MOST_FILES_IN_DIRECTORY:
            self._store.drop("out_of_memory_files")
            return None
        moment_ = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(event.time))
        path = os.path.join(folder, f"{PREFIX}{moment_}-{event.process_index}-{event.pid}-{number}.txt")
        with open(path, "x", encoding="utf-8", errors="replace") as file:
            file.write(oom_report.text(event))
        return path

    def _folder(self) -> str | None:
        settings = self._store.settings
        if settings.flight_recorder is not None:
            return None if settings.flight_recorder.lower() == "off" else os.path.abspath(settings.flight_recorder)
        return os.path.dirname(os.path.abspath(settings.event_log)) if settings.event_log else None


# ------------------------------------------------------------------------------------------------ exceptions


def parsed_error(error: BaseException) -> OomText | None:
    """What an exception's text says of memory; None where it is about something else. Runs no code of the user's."""
    if not isinstance(error, MemoryError | RuntimeError | ValueError) and not _makes_its_text(error):
        return None
    text = _text(error)
    parsed = oom_texts.parse(text)
    if parsed is None and isinstance(error, MemoryError):
        return OomText(stage="allocate")
    return parsed


def _chain(error: BaseException) -> list[BaseException]:
    """The exception and those that it was raised from or while handling."""
    found: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and each not in found and len(found) < _MOST_CHAINED:
        found.append(each)
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
    return found


def _makes_its_text(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] in _LIBRARIES


def _text(error: BaseException) -> str:
    with contextlib.suppress(Exception):
        return str(error) if _makes_its_text(error) else BaseException.__str__(error)
    return ""


def call_site(error: BaseException) -> str | None:
    """`file:line` in the user's code: the innermost of the traceback, else the nearest caller of where it begins."""
    found: str | None = None
    traceback: TracebackType | None = error.__traceback__
    frame: FrameType | None = traceback.tb_frame if traceback is not None else None
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        if not is_jax(name) and not is_plumbing(name):
            found = f"{name}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    while found is None and frame is not None:
        name = frame.f_code.co_filename
        if not is_jax(name) and not is_plumbing(name):
            found = f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return found


def _function(event: Compilation | None) -> str | None:
    return None if event is None else EAGER if event.eager else event.function


def _device(ordinal: int | None) -> str | None:
    """The device of that number among those of this process."""
    if ordinal is None:
        return None
    for client in reversed(internals.clients()):
        local = client.local_devices()
        if client.platform != "cpu" and ordinal < len(local):
            return f"{local[ordinal].platform}:{local[ordinal].id}"
    return None


def describe(call: Call, static_values: bool) -> str | None:
    """The call's arguments as types and shapes, `params['w'] float32[8,8], n int32[]`; the first dozen."""
    taken = signatures.take(call, static_values=static_values)
    if taken is None:
        return None
    names = signatures.parameter_names(call.fun) if call.fun is not None else []
    shown = range(min(len(taken.leaves), MOST_LEAVES))
    keys = signatures.keys_at(taken.tree, shown)
    parts = [f"{signatures.path(keys[number], names)} {taken.leaves[number]}".strip() for number in shown]
    more = len(taken.leaves) - len(parts)
    return ", ".join(parts) + (f" and {more:,} more" if more else "")


_recorders: weakref.WeakKeyDictionary[Store, FlightRecorder] = weakref.WeakKeyDictionary()


def of(store: Store) -> FlightRecorder:
    """The recorder of a store, made when first asked for."""
    found = _recorders.get(store)
    if found is None:
        found = _recorders.setdefault(store, FlightRecorder(store))
    return found


def last_uncaught() -> BaseException | None:
    """The exception that the interpreter, or a notebook, has last shown to the user."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    return error if isinstance(error, BaseException) else None
