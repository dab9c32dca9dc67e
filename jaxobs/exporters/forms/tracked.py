"""Experiment trackers, as far as they have it in common: a few figures now and then, and what the run is.

A tracker's client may wait for a network or a disk, so each piece of work has a thread of its own. While one hangs, the
next are left out and counted; the program waits for the last one only, and not for long.
"""

import abc
import atexit
import contextlib
import importlib.util
import math
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from jaxobs.base.errors import MissingExtraError
from jaxobs.base.files.patience import Patience
from jaxobs.base.guard import guard, internal_error
from jaxobs.facts.process import Exit, Manifest
from jaxobs.facts.snapshot import Snapshot
from jaxobs.state.store import Store

EVERY = 15.0
"""Seconds between figures."""
FIRST_SECONDS = 1.0
"""Seconds between exports until a run has begun: at exit, it would be too late to import a client."""
ACTIVE = "active"
"""Setting for the run that the program has begun itself."""
HAND_OVER_SECONDS = 0.05
LAST_SECONDS = 5.0
"""Seconds that the program's end waits."""
MOST_LOOPS = 8
MOST_DEVICES = 16


class Tracker(abc.ABC):
    """Gives figures to a run, on process 0 of the job."""

    def __init__(self, store: Store) -> None:
        self.every = FIRST_SECONDS
        self._store = store
        self._owner = os.getpid()
        self._work, self._last = Patience(HAND_OVER_SECONDS), Patience(LAST_SECONDS)
        self._told: tuple[Any, int] = (None, 0)
        """The run that knows what runs here, and the number of the manifest that said so."""
        self._finished = False

    @abc.abstractmethod
    def run(self) -> Any:
        """The run that takes the figures now, begun where it has to be; None if there is none."""

    @abc.abstractmethod
    def describe(self, run: Any, parameters: dict[str, str]) -> None:
        """Says what runs here; once more when more is known."""

    @abc.abstractmethod
    def write(self, run: Any, step: int, figures: dict[str, float]) -> None:
        """Takes figures after so many steps."""

    def is_own(self) -> bool:
        """Returns whether the run is jaxobs' own: the program's may have ended when the process does."""
        return True

    @abc.abstractmethod
    def end(self, exit_code: int | None) -> None:
        """Ends what was begun here. None: the process has not ended, but the tracker is given up."""

    def sample(self) -> None:
        """Called every `every` seconds."""
        if self._is_due():
            if self._work.hangs:
                self._store.drop(self._name())
                return
            with contextlib.suppress(TimeoutError):  # it goes on
                self._work.do(self._guarded(self._put))

    def close(self) -> None:
        """Gives the last figures, and ends the own run."""
        atexit.unregister(self._at_exit)
        ends, _, _ = self._store.events(kind=Exit.kind)
        ending = ends[-1] if ends else None
        self._finish(None if not isinstance(ending, Exit) else int(ending.reason != "normal" or bool(ending.code)))

    @guard("tracker.exit")
    def _at_exit(self) -> None:
        """Before the client's own handlers, which it has registered earlier: after them, it takes nothing."""
        self._finish(int(getattr(sys, "last_value", None) is not None))

    def _finish(self, exit_code: int | None) -> None:
        if os.getpid() == self._owner and not self._finished:
            self._finished = True
            until = time.monotonic() + LAST_SECONDS
            while self._work.hangs and time.monotonic() < until:
                time.sleep(0.02)
            try:
                self._last.do(self._guarded(lambda: self._put_last(exit_code)))
            except TimeoutError:
                self._store.drop(self._name())

    def after_fork(self) -> None:
        """The run is the parent's."""
        self.every = math.inf

    def _is_due(self) -> bool:
        """Whether JAX has begun in this process, and it is the first of its job. At exit, JAX no longer says so."""
        manifest = self._manifest()
        return os.getpid() == self._owner and manifest is not None and manifest.process_index == 0

    def _manifest(self) -> Manifest | None:
        events, _, _ = self._store.events(kind=Manifest.kind)
        known = (each for each in reversed(events) if isinstance(each, Manifest) and each.platform is not None)
        return next(known, None)

    def _name(self) -> str:
        return type(self).__module__.rpartition(".")[2]

    def _guarded(self, work: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                work()
            except Exception as error:
                self._store.drop(self._name())
                if threading.main_thread().is_alive():  # a client that ends with the interpreter is no surprise
                    internal_error(self._name(), error)

        return run

    def _put(self) -> None:
        run = self.run()
        if run is None:
            return
        if self.every == FIRST_SECONDS:
            self.every = EVERY
            atexit.register(self._at_exit)
        manifest = self._manifest()
        if manifest is not None and self._told != (run, manifest.sequence):
            self.describe(run, parameters(manifest, self._store.snapshot().process.run_id))
            self._told = run, manifest.sequence
        snapshot = self._store.snapshot()
        self.write(run, steps(snapshot), figures(snapshot))

    def _put_last(self, exit_code: int | None) -> None:
        try:
            if self.is_own() and self._told[0] is not None:
                self._put()
        finally:
            self.end(exit_code)


def installed(module: str, what: str, package: str, extra: str) -> None:
    """Raises `MissingExtraError` if a tracker's package is not installed, without importing it."""
    if importlib.util.find_spec(module) is None:
        raise MissingExtraError(what, package, extra)


def steps(snapshot: Snapshot) -> int:
    """Steps of the loop that made most: the axis of the figures."""
    return max((each.steps for each in snapshot.loops), default=0)


def figures(snapshot: Snapshot) -> dict[str, float]:
    """Goodput, steps, MFU, compilations and memory, by name; what is not known is absent."""
    found: dict[str, float | None] = {
        "compilations": float(sum(each.compiled for each in snapshot.functions)),
        "compile_seconds": sum(each.sum for each in snapshot.phases.values()),
        "findings": float(sum(each.ended is None for each in snapshot.findings)),
    }
    if snapshot.wall is not None:
        found["goodput_ratio"] = snapshot.wall.goodput
        found["wall_seconds"] = snapshot.wall.wall_seconds
    for loop in sorted(snapshot.loops, key=lambda each: each.steps, reverse=True)[:MOST_LOOPS]:
        found |= {
            f"steps/{loop.name}": float(loop.steps),
            f"step_seconds/{loop.name}": loop.mean_seconds,
            f"items_per_second/{loop.name}": loop.items_per_second,
            f"mfu_ratio/{loop.name}": loop.mfu,
        }
    for device in snapshot.devices[:MOST_DEVICES]:
        if device.memory is not None:
            memory = device.memory
            found |= {
                f"memory_in_use_bytes/{device.device}": memory.in_use_bytes,
                f"memory_peak_bytes/{device.device}": memory.peak_bytes,
                f"live_array_bytes/{device.device}": memory.live_array_bytes,
            }
    return {f"jaxobs/{name}": float(value) for name, value in found.items() if value is not None}


def parameters(manifest: Manifest, run_id: str) -> dict[str, str]:
    """Returns what runs here, by name; no environment beyond the manifest's."""
    found = {
        "program": manifest.program or "",
        "run_id": run_id,
        "hostname": manifest.hostname or "",
        "commit": manifest.commit or "",
        "platform": manifest.platform or "",
        "process_count": str(manifest.process_count),
        "devices": ", ".join(f"{count} x {kind}" for kind, count in manifest.devices.items()),
    }
    found |= {f"version/{name}": version for name, version in manifest.versions.items()}
    found |= {f"flag/{name}": value for name, value in manifest.flags.items()}
    return {f"jaxobs/{name}": value[:500] for name, value in found.items() if value}
