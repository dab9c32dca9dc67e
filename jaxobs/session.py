"""One process under observation: sources, exporters, the sampler and the endpoints, started and ended together.

`install` may come before JAX is imported: what touches JAX begins when the program imports it.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from jaxobs import config, discovery, flight_recorder, store
from jaxobs.config import Settings
from jaxobs.errors import JaxobsError
from jaxobs.facts import Event, Exit, Snapshot
from jaxobs.guard import guard, guarded, internal_error, logger
from jaxobs.import_hooks import when_imported
from jaxobs.sampler import Sampled, Sampler, Written
from jaxobs.store import Store
from jaxobs.termination import on_sigterm

if TYPE_CHECKING:
    from jaxobs.server import Handle


LAST_CAPTURE_SECONDS = 1.5
"""How long the last words, and `uninstall`, wait for a capture under way to be written."""


class _Source(Sampled, Protocol):
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def after_fork(self) -> None: ...


class _Exporter(Written, Protocol):
    def close(self) -> None: ...
    def after_fork(self) -> None: ...


def _nothing() -> None:
    """Nothing to undo."""


class Session:
    """What `install` started in this process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.store = store.current()
        self.sources: list[_Source] = []
        self.exporters: list[_Exporter] = []
        self._sampler: Sampler | None = None
        self._lock = threading.RLock()
        self._ended = False
        self._silent = False
        """In a forked child, until it uses JAX."""
        self._undo_sigterm: Callable[[], None] = _nothing
        self._undo_capture_signal: Callable[[], None] = _nothing
        self._await_use: Callable[[], None] = _nothing

    def start(self) -> None:
        """Opens the exporters and, once JAX is there, starts the sources."""
        self.store.configure(self.settings)
        self._open_exporters()
        self.store.installed = True
        if self.store.program is None:
            self.store.program = _program()
        for sentence in config.unknown_variables():
            if self.store.note(sentence):
                logger.warning("%s", sentence)
        with guarded("sigterm"):
            self._undo_sigterm = on_sigterm(lambda: self.finish("signal", "SIGTERM"))
        self._watch_capture_signal()
        when_imported("jax", self._start_sources)

    def reconfigure(self, settings: Settings) -> None:
        """Puts other settings in force; where one of them is refused, the old ones stay in force."""
        with self._lock:
            before, self.settings = self.settings, settings
            self._close_exporters()
            try:
                self._open_exporters()
            except JaxobsError:
                self.settings = before
                self._open_exporters()
                raise
            self.store.configure(settings)
            if settings.capture_signal != before.capture_signal:
                self._watch_capture_signal()
            if self._sampler is not None:
                self._sampler.stop()
                self._start_sampler()

    @guard("session.capture_signal")
    def _watch_capture_signal(self) -> None:
        self._undo_capture_signal()
        self._undo_capture_signal = _nothing
        if self.settings.capture_signal != "off":
            from jaxobs.capturing import on_signal  # few want it

            self._undo_capture_signal = on_signal.watch(self.store, self.settings.capture_signal)

    def _open_exporters(self) -> None:
        opened: list[_Exporter] = []
        refused: JaxobsError | None = None
        for module in discovery.modules("jaxobs.exporters", internal_error):
            with guarded(f"open {module.__name__}"):
                try:
                    exporter = module.exporter(self.store, self.settings) if hasattr(module, "exporter") else None
                except JaxobsError as error:
                    refused = error
                    break
                if exporter is not None:
                    opened.append(exporter)
        self.exporters = opened
        if refused is not None:
            self._close_exporters()
            raise refused

    def _close_exporters(self) -> None:
        exporters, self.exporters = self.exporters, []
        for exporter in exporters:
            with guarded(f"close {type(exporter).__name__}"):
                exporter.close()

    @guard("session.sources")
    def _start_sources(self) -> None:
        with self._lock:
            if self._ended or self.sources:
                return
            for module in discovery.modules("jaxobs.sources", internal_error):
                with guarded(f"start {module.__name__}"):
                    source = module.source(self.store)
                    # Before it starts: what began to listen and then failed has to be stopped as well.
                    self.sources.append(source)
                    source.start()
            self._start_sampler()
            # JAX forgets its backends at exit. What is registered after its own hook runs before it.
            atexit.register(self._last_sample)

    def _start_sampler(self) -> None:
        self._sampler = Sampler(self.store, self.settings.sample_interval, self.sources, lambda: self.exporters)
        self.store.freshen = self._sampler.if_cheap

    def sample(self) -> None:
        """Takes one sample now."""
        if self._sampler is not None:
            self._sampler.sample()

    def _last_sample(self) -> None:
        """At the interpreter's exit; on the sampler's thread, which may hang in a device where the exit must not."""
        if self._sampler is not None:
            self._sampler.stop(last=True)

    def uncaught(self, error: BaseException) -> None:
        """Takes in the exception that the process ends by, if nobody has shown it before."""
        if not self._silent and not self._ended:
            flight_recorder.of(self.store).uncaught(error, ending=True)

    def finish(self, reason: str, detail: str | None = None, code: int | None = None) -> None:
        """Writes the last state, once: a last sample, the `exit` event, the metrics file."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
        if self._silent:
            return
        with guarded("finish"):
            if self._sampler is not None:
                self._sampler.stop(last=True)
            recorder = flight_recorder.of(self.store)
            if reason == "signal":
                recorder.ended(detail or reason)
            _end_captures(self.store, LAST_CAPTURE_SECONDS)
            standing = None
            if self.settings.event_log is not None:
                with guarded("standing"):
                    standing = self.store.standing()
            self.store.record(
                Exit(
                    time=time.time(), reason=reason, detail=detail, code=code, report=recorder.last_report,
                    standing=standing,
                )
            )  # fmt: skip
        self._close_exporters()

    def stop(self) -> None:
        """Undoes `start`: listeners, thread and exporters; what was recorded stays."""
        _end_captures(self.store, LAST_CAPTURE_SECONDS)
        with self._lock:
            self._ended = True
            if self._sampler is not None:
                self._sampler.stop()
                self._sampler = None
            self.store.freshen = None
            atexit.unregister(self._last_sample)
            for source in self.sources:
                with guarded(f"stop {type(source).__name__}"):
                    source.stop()
            self.sources = []
            self._close_exporters()
            self._await_use()
            self._undo_sigterm()
            self._undo_capture_signal()
            self.store.installed = False

    def after_fork(self) -> None:
        """In a forked child: silent until it uses JAX itself."""
        self._lock = threading.RLock()
        self._sampler = None
        self._silent = True
        self.store.freshen = None
        parts: list[_Source | _Exporter] = [*self.sources, *self.exporters]
        for each in parts:
            with guarded(f"fork {type(each).__name__}"):
                each.after_fork()
        self._await_use()
        self._await_use = self.store.subscribe(self._used_in_child)
        if not self.sources:
            when_imported("jax", self._start_sources)

    def _used_in_child(self, event: Event) -> None:
        self._await_use()
        self._silent = False
        _at_exit_of_worker()
        if self._sampler is None and self.sources and not self._ended:
            self._start_sampler()


def _end_captures(store: Store, timeout: float) -> None:
    """Has a trace that is running written, with the steps that were made."""
    if "jaxobs.capturing.runner" in sys.modules:  # else there is none
        from jaxobs.capturing import runner

        with guarded("end captures"):
            runner.end(store, timeout)


_session: Session | None = None
_handles: list[Handle] = []
_lock = threading.RLock()


def install(**settings: Any) -> None:
    """Sees every compilation of this process from now on; replaces no function and costs nothing per call.

    Idempotent. May be called before JAX is imported. Settings: see `docs/reference/settings.md`; each has a
    variable `JAXOBS_<NAME>` too. A second call with other settings puts them in force.

    Raises:
      SettingError: a setting is unknown, its value does not fit, or a file cannot be written.
    """
    global _session
    if config.disabled():
        return
    with _lock:
        if _session is None:
            resolved = config.resolve(settings)
            _instrument_later(resolved)
            session = Session(resolved)
            session.start()
            _session = session
            _at_exit()
        elif settings:
            given = {name: value for name, value in settings.items() if value is not None}
            resolved = config.resolve(given)
            changed = dataclasses.replace(_session.settings, **{name: getattr(resolved, name) for name in given})
            _instrument_later(changed)
            if changed != _session.settings:
                _session.reconfigure(changed)


_instrumented: set[str] = set()


def _instrument_later(settings: Settings) -> None:
    """Wraps the functions that the setting `instrument` names, when their modules are imported."""
    from jaxobs.instrumentation import instrument_when_imported

    for spec in settings.instrument:
        if spec not in _instrumented:
            instrument_when_imported(spec)
            _instrumented.add(spec)


def uninstall() -> None:
    """Stops watching: removes our listeners, ends our thread and endpoints. What was recorded stays readable."""
    global _session
    with _lock:
        if _session is not None:
            session, _session = _session, None
            session.stop()
        while _handles:
            _handles.pop().close()


def serve(port: int | None = None, addr: str | None = None) -> Handle | None:
    """Serves the live page, `/metrics` and the API in daemon threads.

    Args:
      port: 9464 unless given or set by `JAXOBS_PORT`; 0 takes a free one.
      addr: loopback unless given or set by `JAXOBS_ADDR`.

    Returns:
      A handle with `.url`, `.port` and `.close()`; None when `JAXOBS_DISABLED` is set.

    Raises:
      PortTakenError: somebody listens there already; the message says what to do.
      SettingError: a value does not fit.
    """
    if config.disabled():
        return None
    with _lock:
        given = {"port": port, "addr": addr}
        settings = config.resolve({name: value for name, value in given.items() if value is not None})
        if _session is not None:
            settings = dataclasses.replace(
                _session.settings,
                **{name: getattr(settings, name) for name, value in given.items() if value is not None},
            )
        from jaxobs import server  # an HTTP server is dear to import, and not everybody serves

        handle = server.serve(store.current(), settings.port, settings.addr)
        _handles[:] = [*(each for each in _handles if not each.closed), handle]
        _at_exit()
        return handle


def start(**settings: Any) -> Handle | None:
    """`install` and `serve`: the one line in a training script.

    Returns:
      The endpoint's handle, the same one when called again; None when `JAXOBS_DISABLED` is set.

    Raises:
      PortTakenError, SettingError: as `install` and `serve`.
    """
    if config.disabled():
        return None
    with _lock:
        install(**settings)
        port, addr = settings.get("port"), settings.get("addr")
        for handle in _handles:
            if not handle.closed and port in (None, 0, handle.port) and addr in (None, handle.addr):
                return handle
        return serve(port, addr)


def snapshot() -> Snapshot:
    """The whole state at this moment, as frozen dataclasses."""
    return store.current().snapshot()


def hand_over(since: float) -> list[Callable[[], None]]:
    """What was lowered on this thread since then, for a compile elsewhere: to be called on the thread that compiles."""
    with guarded("hand_over"):
        sources = [] if _session is None else _session.sources
        return [source.hand_over(since) for source in sources if hasattr(source, "hand_over")]
    return []


def finish(reason: str, detail: str | None = None, code: int | None = None) -> None:
    """Writes the last state, once: the `exit` event and the metrics file."""
    if _session is not None:
        _session.finish(reason, detail, code)


def _program() -> str | None:
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    file = getattr(main, "__file__", None)
    return os.path.basename(file) if file else None


_registered = False


def _at_exit() -> None:
    """Registers the hooks of exit and fork, once for the life of the process."""
    global _registered
    if _registered:
        return
    _registered = True
    atexit.register(_exiting)
    _at_exit_of_worker()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forked)


def _at_exit_of_worker() -> None:
    """Children that `multiprocessing` forks end without exit handlers; it has finalizers of its own."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, _exiting, exitpriority=0)


@guard("exit")
def _exiting() -> None:
    # At the interpreter's exit the uncaught exception is over; a worker's finalizers run while it is raised. At a
    # prompt, errors before the last line are no reason to exit.
    error = sys.exc_info()[1] or (None if hasattr(sys, "ps1") else getattr(sys, "last_value", None))
    if error is not None and _session is not None:
        _session.uncaught(error)
    if error is None:
        finish("normal")
    elif isinstance(error, SystemExit):
        finish("normal", code=0 if error.code is None else error.code if isinstance(error.code, int) else 1)
    else:
        finish("exception", type(error).__name__, 130 if isinstance(error, KeyboardInterrupt) else 1)
    for handle in _handles:
        with contextlib.suppress(OSError):
            handle.close()


@guard("fork")
def _forked() -> None:
    global _lock
    _lock = threading.RLock()
    while _handles:
        _handles.pop().forget()
    if _session is not None:
        _session.after_fork()
