"""The flight recorder: whoever sees an exception or an end shows it here, and each is reported once.

An exception that is out of memory becomes a report: an `out_of_memory` event and a text file. What ends the process, an
exception that nothing caught, an exit code or a signal, leaves the last minutes in a text file. The exception is only
read, and the program waits two seconds at most.
"""

import os
import re
import time
import weakref
from collections import Counter
from dataclasses import dataclass, replace

from jaxobs import internals
from jaxobs.base import threads
from jaxobs.base.guard import guard, guarded
from jaxobs.facts.compilations import EAGER
from jaxobs.facts.errors import Error, OutOfMemory
from jaxobs.facts.numbers import NonFinite
from jaxobs.internals import Call
from jaxobs.reasons import signature as signatures
from jaxobs.recorder import host, last_minutes, moment, oom_causes, oom_collection, oom_report, user_errors
from jaxobs.recorder.last_minutes import Ending
from jaxobs.recorder.oom_texts import OomText
from jaxobs.recorder.report_files import ReportFiles, folder_of
from jaxobs.state.store import Store
from jaxobs.state.watched import Watched

BURST = 3
REFILL_SECONDS = 10.0
"""Full reports in a row, and time until there is one more: programs that try sizes out run out of memory often."""
MOST_MESSAGE = 4000
MOST_ERROR_MESSAGE = 2000
MOST_OF_KIND = 20
"""Errors of one kind that are reported one by one as they leave an instrumented function; all are counted."""
MOST_LEAVES = 12
MOST_THREADS = 12
UNKNOWN = "<unknown>"


@dataclass(slots=True)
class Seen:
    """Observer of an exception, and its facts. Live objects: read at once, not kept."""

    function: str | None = None
    call: Call | None = None
    call_site: str | None = None
    stage: str | None = None
    """The stage, where the text alone says only that an array was not allocated."""


class _OfKind(Counter[str]):
    """Errors that left instrumented functions, by kind; see `Store.part`."""


class FlightRecorder:
    """Turns exceptions and the end of one process into reports. Safe for threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.after_fork()

    def after_fork(self) -> None:
        """In a forked child: nothing was seen or written yet."""
        # Reentrant: a signal handler of the program may raise while this thread is in here.
        self._lock = threads.RLock()
        self._known = user_errors.Known()
        self._uncaught = user_errors.Known()
        self._known_kinds = user_errors.Known()
        self._nonfinite = user_errors.Known()
        self._oom_files = ReportFiles(self._store, "out-of-memory")
        self._end_files = ReportFiles(self._store, "last-minutes")
        self._ended = False
        self._written_down = threads.Event()
        self._path: str | None = None
        self._left = float(BURST)
        self._refilled = time.monotonic()

    @guard("flight_recorder")
    def saw(self, error: BaseException, seen: Seen | None = None) -> OutOfMemory | None:
        """Reports an exception that is out of memory, or that was raised from one; the first time it is shown."""
        for link in user_errors.chain(error):
            parsed = user_errors.parsed_error(link)
            if parsed is not None and not parsed.harmless:
                return self._report(link, parsed, seen or Seen()) if self._known.is_new(link) else None
        return None

    @guard("flight_recorder.uncaught")
    def uncaught(self, error: BaseException, *, ending: bool = False) -> None:
        """Records once what nothing caught, and reports it if memory ran out; `ending` unless at a prompt."""
        if not self._uncaught.is_new(error):
            return
        if isinstance(error, Exception):
            self.saw(error)
        report = self.ended(error) if ending else None
        if isinstance(error, Exception):
            self._store.record(replace(self._error(error), report=report))

    @guard("flight_recorder.recognised")
    def recognised(self, error: Exception, function: str | None) -> None:
        """Records an exception of a known kind as it leaves an instrumented function; of many of a kind the first."""
        kind = user_errors.recognised(error)
        if kind is None or not self._known_kinds.is_new(error):
            return
        with self._lock:
            of_kind = self._store.part(_OfKind)
            of_kind[kind.kind] += 1
            told = of_kind[kind.kind] <= MOST_OF_KIND
        if told:
            self._store.record(replace(self._error(error), function=function, uncaught=False))
        else:
            self._store.drop("errors")

    def _error(self, error: Exception) -> Error:
        """Returns the events of an exception; for an error of `jax_debug_nans` also that a value is not finite."""
        kind = user_errors.recognised(error)
        text = user_errors.text(error)
        event = Error(
            time=time.time(), error=type(error).__name__, call_site=user_errors.call_site(error),
            message=text[:MOST_ERROR_MESSAGE] if self._store.settings.static_values else None,
        )  # fmt: skip
        if kind is None:
            return event
        if kind.kind == "nonfinite" and self._nonfinite.is_new(error):
            found = _nonfinite(error, event.call_site)
            self._store.part(Watched).raised(found.name)
            self._store.record(found)
        return replace(event, error_kind=kind.kind, meaning=kind.meaning, advice=kind.advice)

    def ignore(self, error: BaseException) -> None:
        """An exception of the time before: it is not to be reported."""
        self._uncaught.is_new(error)
        self._known.is_new(error)

    # ------------------------------------------------------------------------------------------ the last minutes

    @guard("flight_recorder.ended")
    def ended(self, by: BaseException | str) -> str | None:
        """Writes down the last minutes, once for a process, and returns the file's path; None if none is wanted.

        Args:
          by: the exception, or the signal's name. Nothing is written of an exit with code 0, nor of another before
            anything was compiled: a usage error, and no concern of JAX.
        """
        if isinstance(by, SystemExit) and not (exit_code(by) and self._store.events(kind="compilation")[0]):
            return None
        with self._lock:
            wanted = self._store.installed and folder_of(self._store.settings) is not None
            first = wanted and not self._ended
            self._ended = self._ended or first
        if first:
            try:
                oom_collection.in_time(lambda: self._write_down(by), "last-minutes")
            finally:
                self._written_down.set()
        return self.last_report

    @property
    def last_report(self) -> str | None:
        """The text file with the last minutes, if there is one; waits where another thread writes it."""
        if self._ended:
            self._written_down.wait(oom_collection.WAIT_SECONDS)
        return self._path

    def _write_down(self, by: BaseException | str) -> None:
        ending = _ending(by, self._store.settings.static_values)
        snapshot, (events, _, _) = self._store.snapshot(), self._store.events()
        text = last_minutes.text(ending, snapshot, events)
        self._path = self._end_files.write(ending.time, snapshot.process.process_index, text)

    # -------------------------------------------------------------------------------------------- out of memory

    def _report(self, error: BaseException, parsed: OomText, seen: Seen) -> OutOfMemory:
        started = time.monotonic()
        site = seen.call_site or user_errors.call_site(error)
        at_site = oom_collection.compiled_at(self._store, site, parsed.program) or oom_collection.of_size(
            self._store, parsed.wanted
        )
        known = None if at_site is None else EAGER if at_site.eager else at_site.function
        function = seen.function or known or parsed.program or UNKNOWN
        stage = parsed.stage
        if stage == "allocate" and (seen.stage or (at_site is not None and not at_site.eager)):
            stage = seen.stage or "run"
        event = OutOfMemory(
            time=time.time(), process_index=internals.process_index_and_count()[0], pid=os.getpid(),
            function=function, stage=stage, error=type(error).__name__, message=user_errors.text(error)[:MOST_MESSAGE],
            device=oom_collection.device_of(parsed.ordinal), call_site=site,
            wanted_bytes=parsed.wanted, used_bytes=parsed.used, free_bytes=parsed.free, limit_bytes=parsed.limit,
            exceeded_bytes=parsed.exceeded, total_bytes=parsed.total, sections=parsed.sections, buffers=parsed.buffers,
        )  # fmt: skip
        if not self._may_report():
            self._store.drop("out_of_memory_reports")
            return self._store.record(event)
        if seen.call is not None:
            with guarded("flight_recorder.signature"):
                event = replace(event, signature=describe(seen.call, self._store.settings.static_values))
        event = replace(event, **oom_collection.collected(self._store, function, at_site))
        device = event.device or (event.devices[0].device if len(event.devices) == 1 else None)
        event = replace(event, device=device, seconds=time.monotonic() - started)
        with guarded("flight_recorder.diagnose"):
            made, growing = len(oom_collection.compilations(self._store)), moment.growing(self._store)
            leaks = moment.leaks(self._store)
            causes = oom_causes.diagnose(event, executables=made, growing=growing, leaks=leaks)
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

    @guard("flight_recorder.file")
    def _write(self, event: OutOfMemory) -> str | None:
        return self._oom_files.write(event.time, event.process_index, oom_report.text(event))


def _ending(by: BaseException | str, values: bool) -> Ending:
    """Returns the end of the process; for a signal, with the places of its threads."""
    now, flags, memory = time.time(), moment.flags(), host.memory()
    if isinstance(by, str):
        threads = user_errors.thread_lines(MOST_THREADS)
        return Ending(time=now, what=by, threads=threads, flags=flags, host=memory)
    _, *causes = user_errors.chain(by)
    return Ending(
        time=now, flags=flags, host=memory,
        what=f"SystemExit, exit code {exit_code(by)}" if isinstance(by, SystemExit) else _named(by, values),
        call_site=user_errors.call_site(by), traceback=user_errors.traceback_lines(by),
        causes=tuple(f"{_named(each, values)} at {user_errors.call_site(each) or '?'}" for each in causes),
    )  # fmt: skip


_BY_DEBUG_NANS = re.compile(r"invalid value \((?P<what>nan|inf)\) encountered in (?P<name>\S+)")


def _nonfinite(error: Exception, call_site: str | None) -> NonFinite:
    """Returns the value that `jax_debug_nans` found, by the text of its error."""
    found = next(
        (match for each in user_errors.chain(error) if (match := _BY_DEBUG_NANS.search(user_errors.text(each)))), None
    )
    return NonFinite(
        time=time.time(),
        name=found["name"].rstrip(".") if found else UNKNOWN,
        what=found["what"] if found else "nan",
        source="debug_nans",
        call_site=call_site,
    )


def _named(error: BaseException, values: bool) -> str:
    message = user_errors.text(error)[:MOST_ERROR_MESSAGE] if values else ""
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def exit_code(error: SystemExit) -> int:
    """The code that a process exits with."""
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1


def describe(call: Call, static_values: bool) -> str | None:
    """The call's arguments as types and shapes, `params['w'] float32[8,8], n int32[]`; the first dozen."""
    if (taken := signatures.take(call, static_values=static_values)) is None:
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
    if (found := _recorders.get(store)) is None:
        found = _recorders.setdefault(store, FlightRecorder(store))
    return found
