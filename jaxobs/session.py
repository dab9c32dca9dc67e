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
from typing import Any, Protocol

from jaxobs import config, discovery, server, store
from jaxobs.config import Settings
from jaxobs.facts import Event, Exit, Snapshot
from jaxobs.guard import guard, guarded
from jaxobs.import_hooks import when_imported
from jaxobs.server import Handle
from jaxobs.termination import on_sigterm

_BUDGET = 0.005
"""Share of one core that sampling may take: 0.5 %."""
_FIRST_SAMPLES = 0.5
_FRESH_SECONDS = 1.0
_CHEAP_SECONDS = 0.005


class _Part(Protocol):
    def sample(self) -> None: ...
    def after_fork(self) -> None: ...


class _Source(_Part, Protocol):
    def start(self) -> None: ...
    def stop(self) -> None: ...


class _Exporter(_Part, Protocol):
    def close(self) -> None: ...


class Sampler:
    """The slow tick: a daemon thread that samples, as rarely as keeps it within its share of a core."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._sampled = 0.0
        self._cost = 0.0
        self._thread = threading.Thread(target=self._run, name="jaxobs-sampler", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        pause = _FIRST_SAMPLES
        while not self._stop.wait(pause):
            self.sample()
            awake = bool(self._session.store.snapshot_devices())
            wanted = self._session.settings.sample_interval
            pause = max(wanted if awake else min(wanted, _FIRST_SAMPLES), self._cost / _BUDGET)

    def sample(self) -> None:
        """Takes one sample now, on the calling thread."""
        with self._lock:
            started = time.thread_time()
            for each in self._session.parts():
                with guarded(f"sample {type(each).__name__}"):
                    each.sample()
            self._session.store.tick()
            self._sampled, self._cost = time.monotonic(), time.thread_time() - started

    def if_cheap(self) -> None:
        """Takes a sample before a scrape when the last one is old and was cheap; else the scrape gets the last."""
        if time.monotonic() - self._sampled > _FRESH_SECONDS and self._cost < _CHEAP_SECONDS:
            self.sample()

    def stop(self) -> None:
        """Ends the thread; waits for a sample that is being taken."""
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=2)


def _nothing() -> None:
    """Nothing to undo."""


class Session:
    """What `install` started in this process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.store = store.current()
        self.sources: list[_Source] = []
        self.exporters: list[_Exporter] = []
        self.handles: list[Handle] = []
        self._sampler: Sampler | None = None
        self._lock = threading.RLock()
        self._ended = False
        self._undo_sigterm: Callable[[], None] = _nothing
        self._await_use: Callable[[], None] = _nothing

    def start(self) -> None:
        """Opens the exporters and, once JAX is there, starts the sources."""
        self.store.configure(self.settings)
        self._open_exporters()
        self.store.installed = True
        if self.store.program is None:
            self.store.program = _program()
        with guarded("sigterm"):
            self._undo_sigterm = on_sigterm(lambda: self.finish("signal", "SIGTERM"))
        when_imported("jax", self._start_sources)

    def reconfigure(self, settings: Settings) -> None:
        """Puts other settings in force; exporters that were open go on where they were."""
        with self._lock:
            self._close_exporters()
            self.settings = settings
            self.store.configure(settings)
            self._open_exporters()

    def _open_exporters(self) -> None:
        for module in discovery.modules("jaxobs.exporters"):
            if hasattr(module, "exporter"):
                exporter = module.exporter(self.store, self.settings)
                if exporter is not None:
                    self.exporters.append(exporter)

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
            for module in discovery.modules("jaxobs.sources"):
                with guarded(f"start {module.__name__}"):
                    source = module.source(self.store)
                    source.start()
                    self.sources.append(source)
            self._start_sampler()
            # JAX forgets its backends at exit. What is registered after its own hook runs before it.
            atexit.register(self.sample)

    def _start_sampler(self) -> None:
        self._sampler = Sampler(self)
        self.store.freshen = self._sampler.if_cheap

    def parts(self) -> list[_Part]:
        """Sources and exporters."""
        return [*self.sources, *self.exporters]

    def sample(self) -> None:
        """Takes one sample now."""
        if self._sampler is not None:
            self._sampler.sample()

    def finish(self, reason: str, detail: str | None = None, code: int | None = None) -> None:
        """Writes the last state, once: a last sample, the `exit` event, the metrics file."""
        with self._lock:
            if self._ended:
                return
            self._ended = True
        with guarded("finish"):
            if self._sampler is not None:
                self._sampler.stop()
                self._sampler.sample()
            self.store.record(Exit(time=time.time(), reason=reason, detail=detail, code=code))
        self._close_exporters()

    def stop(self) -> None:
        """Undoes `start`: listeners, thread, endpoints and exporters; what was recorded stays."""
        with self._lock:
            self._ended = True
            if self._sampler is not None:
                self._sampler.stop()
                self._sampler = None
            self.store.freshen = None
            atexit.unregister(self.sample)
            for source in self.sources:
                with guarded(f"stop {type(source).__name__}"):
                    source.stop()
            self.sources = []
            self._close_exporters()
            for handle in self.handles:
                handle.close()
            self.handles = []
            self._undo_sigterm()
            self.store.installed = False

    def after_fork(self) -> None:
        """In a forked child: silent until it uses JAX itself."""
        self._lock = threading.RLock()
        self._sampler = None
        self.store.freshen = None
        for handle in self.handles:
            handle.forget()
        self.handles = []
        for each in self.parts():
            each.after_fork()
        self._await_use()
        self._await_use = self.store.subscribe(self._used_in_child)

    def _used_in_child(self, event: Event) -> None:
        self._await_use()
        if self._sampler is None and not self._ended:
            self._start_sampler()


_session: Session | None = None
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
            session = Session(config.resolve(settings))
            session.start()
            _session = session
            _at_exit()
        elif settings:
            given = {name: value for name, value in settings.items() if value is not None}
            resolved = config.resolve(given)
            changed = dataclasses.replace(_session.settings, **{name: getattr(resolved, name) for name in given})
            if changed != _session.settings:
                _session.reconfigure(changed)
        _instrument_later(_session.settings)


_instrumented: set[str] = set()


def _instrument_later(settings: Settings) -> None:
    """Wraps the functions that the setting `instrument` names, when their modules are imported."""
    from jaxobs.instrumentation import instrument_when_imported

    for spec in settings.instrument:
        if spec not in _instrumented:
            _instrumented.add(spec)
            instrument_when_imported(spec)


def uninstall() -> None:
    """Stops watching: removes our listeners, ends our thread and endpoints. What was recorded stays readable."""
    global _session
    with _lock:
        if _session is not None:
            session, _session = _session, None
            session.stop()


def serve(port: int | None = None, addr: str | None = None) -> Handle:
    """Serves the live page, `/metrics` and the API in daemon threads.

    Args:
      port: 9464 unless given or set by `JAXOBS_PORT`; 0 takes a free one.
      addr: loopback unless given or set by `JAXOBS_ADDR`.

    Returns:
      A handle with `.url`, `.port` and `.close()`.

    Raises:
      PortTakenError: somebody else listens there; the message says what to do.
      SettingError: a value does not fit.
    """
    with _lock:
        given = {"port": port, "addr": addr}
        settings = config.resolve({name: value for name, value in given.items() if value is not None})
        if _session is not None:
            settings = dataclasses.replace(
                _session.settings,
                **{name: getattr(settings, name) for name, value in given.items() if value is not None},
            )
        handle = server.serve(store.current(), settings.port, settings.addr)
        if _session is not None:
            _session.handles.append(handle)
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
        assert _session is not None
        running = [handle for handle in _session.handles if settings.get("port") in (None, handle.port)]
        return running[0] if running else serve(settings.get("port"), settings.get("addr"))


def snapshot() -> Snapshot:
    """The whole state at this moment, as frozen dataclasses."""
    return store.current().snapshot()


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
    os.register_at_fork(after_in_child=_forked)


@guard("exit")
def _exiting() -> None:
    error = getattr(sys, "last_value", None)
    if error is None:
        finish("normal")
    else:
        finish("exception", type(error).__name__, 1)
    if _session is not None:
        for handle in _session.handles:
            with contextlib.suppress(OSError):
                handle.close()


@guard("fork")
def _forked() -> None:
    global _lock
    _lock = threading.RLock()
    store.after_fork()
    if _session is not None:
        _session.after_fork()
