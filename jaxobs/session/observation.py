"""Observation of one process: sources, exporters and the sampler, started and ended together."""

import atexit
import os
import sys
import time
from collections.abc import Callable, Collection
from functools import partial

from jaxobs.base import config, discovery, threads
from jaxobs.base.config import Settings
from jaxobs.base.errors import JaxobsError
from jaxobs.base.guard import guard, guarded, internal_error
from jaxobs.base.import_hooks import when_imported
from jaxobs.exporters import Exporter, ExporterModule
from jaxobs.facts.events import Event
from jaxobs.facts.process import Exit
from jaxobs.recorder import flight_recorder
from jaxobs.session.sampler import Sampler
from jaxobs.session.termination import on_sigterm
from jaxobs.sources import Source, SourceModule
from jaxobs.state import store
from jaxobs.state.open_phases import OpenPhases
from jaxobs.state.store import Store

LAST_CAPTURE_SECONDS = 1.5
"""Seconds for which the exit and `uninstall` wait for a capture under way to be written."""


WITHOUT_JAX = frozenset((
    "conditions", "flight_recorder", "last_end", "loops", "patterns", "process", "run", "torch_xla", "watched",
))  # fmt: skip
"""Sources that a program which imports torch_xla has use for, and that do without JAX."""


def _nothing() -> None:
    """Nothing to undo."""


class Session:
    """Everything that `install` started in this process."""

    def __init__(
        self, settings: Settings, in_worker: Callable[[], None] = _nothing, given: Collection[str] | None = None
    ) -> None:
        """Calls `in_worker` when a forked child uses JAX for the first time.

        What is not in `given`, the names of settings that the program gave itself, came from variables: where it cannot
        be done, the program continues without it. None stands for all.
        """
        self.settings = settings
        self.given = set(config.names() if given is None else given)
        self._in_worker = in_worker
        self.store = store.current()
        self.sources: list[Source] = []
        self._started: set[str] = set()
        """Names of their modules."""
        self.exporters: list[Exporter] = []
        self._sampler: Sampler | None = None
        self._lock = threads.RLock()
        self._ended = False
        self._silent = False
        """Runs in a forked child, until it uses JAX."""
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
            self.store.warn(sentence)
        with guarded("sigterm"):
            self._undo_sigterm = on_sigterm(lambda: self.finish("signal", "SIGTERM"))
        self._watch_capture_signal()
        when_imported("jax", self._start_sources)
        when_imported("torch_xla", partial(self._start_sources, only=WITHOUT_JAX))

    def start_in_child(self) -> None:
        """Starts in a child that `multiprocessing` began as a new interpreter: from here on as in a forked one."""
        self.store.configure(self.settings)
        self.store.installed = True
        self._silent = True
        when_imported("jax", self._start_sources_in_child)
        when_imported("torch_xla", partial(self._start_sources_in_child, WITHOUT_JAX))

    def _start_sources_in_child(self, only: frozenset[str] | None = None) -> None:
        self._start_sources(sampling=False, only=only)
        self.after_fork()
        # After what the sources have told by themselves, which is no use of JAX.
        self._open_exporters()

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
            from jaxobs.actions.capturing import on_signal  # few want it

            self._undo_capture_signal = on_signal.watch(self.store, self.settings.capture_signal)

    def _open_exporters(self) -> None:
        opened: list[Exporter] = []
        refused: JaxobsError | None = None
        for module in discovery.modules(ExporterModule, internal_error):
            with guarded(f"open {module.__name__}"):
                try:
                    exporter = module.exporter(self.store, self.settings)
                except JaxobsError as error:
                    if discovery.short_name(module) not in self.given:
                        self.store.warn(f"{error} It came from a variable, and is ignored.")
                        continue
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
    def _start_sources(self, sampling: bool = True, only: frozenset[str] | None = None) -> None:
        with self._lock:
            if self._ended:
                return
            for module in discovery.modules(SourceModule, internal_error):
                name = discovery.short_name(module)
                if name in self._started or (only is not None and name not in only):
                    continue
                self._started.add(name)
                with guarded(f"start {module.__name__}"):
                    source = module.source(self.store)
                    # Before it starts: what began to listen and then failed has to be stopped as well.
                    self.sources.append(source)
                    source.start()
            self.sources.sort(key=lambda each: getattr(type(each), "rank", 0))
            if sampling and self._sampler is None:
                self._start_sampler()
            # JAX forgets its backends at exit. What is registered after its own hook runs before it.
            atexit.unregister(self._last_sample)
            atexit.register(self._last_sample)

    def _start_sampler(self) -> None:
        self._sampler = Sampler(self.store, self.settings.sample_interval, self.sources, lambda: self.exporters)
        self.store.freshen = self._sampler.if_cheap

    def sample(self) -> None:
        """Takes one sample now."""
        if self._sampler is not None:
            self._sampler.sample()

    @guard("session.last_sample")
    def _last_sample(self) -> None:
        """Ends at the interpreter's exit, on the sampler's thread: a device may hang, and the exit must not."""
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
                for finding in self.store.snapshot_findings(unrecorded=True):
                    self.store.record(finding)
                with guarded("standing"):
                    standing = self.store.standing()
            self.store.record(
                Exit(
                    time=time.time(), reason=reason, detail=detail, code=code, report=recorder.last_report,
                    compiling=self.store.part(OpenPhases).all(), standing=standing,
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
            self._started.clear()
            self._close_exporters()
            self._await_use()
            self._undo_sigterm()
            self._undo_capture_signal()
            self.store.installed = False

    def after_fork(self) -> None:
        """Silences a forked child until it uses JAX itself."""
        self._lock = threads.RLock()
        self._sampler = None
        self._silent = True
        self.store.freshen = None
        parts: list[Source | Exporter] = [*self.sources, *self.exporters]
        for part in parts:
            with guarded(f"fork {type(part).__name__}"):
                part.after_fork()
        self._await_use()
        self._await_use = self.store.subscribe(self._used_in_child)
        if not self.sources:
            when_imported("jax", self._start_sources)

    def _used_in_child(self, event: Event) -> None:
        self._await_use()
        self._silent = False
        self._in_worker()
        if self._sampler is None and self.sources and not self._ended:
            self._start_sampler()


def _end_captures(store: Store, timeout: float) -> None:
    """Has a trace that is running written, with the steps that were made."""
    if "jaxobs.actions.capturing.runner" in sys.modules:  # else there is none
        from jaxobs.actions.capturing import runner

        with guarded("end captures"):
            runner.end(store, timeout)


def _program() -> str | None:
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    file = getattr(main, "__file__", None)
    return os.path.basename(file) if file else None
