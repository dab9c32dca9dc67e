"""Runs actions: one at a time, not too often, within bounds of size; what became of each is an `action` event.

An action runs on a daemon thread of its own, so that who asks for it may go on. Nothing that fails in there reaches the
program: only who asks for something that does not exist is reported by an exception.
"""

from __future__ import annotations

import atexit
import math
import os
import threading
import time
import weakref
from collections.abc import Mapping
from typing import Any

from jaxobs import actions, internals
from jaxobs.actions import ActionModule, CheckingModule
from jaxobs.actions.capturing import action_types, folder
from jaxobs.actions.capturing.action_types import Job, Refused
from jaxobs.base import config, threads
from jaxobs.base.errors import ParameterError, did_you_mean
from jaxobs.base.guard import guarded, logger
from jaxobs.facts.actions import Action
from jaxobs.state.store import Store

START_SECONDS = 30.0
"""How long who asks waits until it is clear that an action is not refused."""
EXIT_SECONDS = 10.0
"""How long the interpreter's exit waits for an action under way, which is told to end: a trace has to be written."""
_REFUSALS_EVERY = 1.0


class Capture:
    """An action that was asked for: under way, done, refused or failed."""

    def __init__(self, action: str, name: str, path: str | None) -> None:
        self.action = action
        """`memory` or `profile`."""
        self.name = name
        """Name of its directory: action, time (UTC), process index, pid, number."""
        self.path = path
        """The file to look at (`memory`), or the directory (`profile`), which is there at the end. None if nothing is
        written."""
        self.result: str | None = None
        """`done`, `refused` or `failed`; None as long as it is under way."""
        self.detail: str | None = None
        """A sentence for a person: what was captured, or why nothing was."""
        self.bytes: int | None = None
        """Size of what was written."""
        self.seconds: float | None = None
        """Time that it took."""
        self.retry_after: float | None = None
        """Seconds after which it may be asked for again, where it came too soon after another."""
        self._stopping = threads.Event()
        self._started = threads.Event()
        self._ended = threads.Event()

    def wait(self, timeout: float | None = None) -> Capture:
        """Waits for the end, at most so many seconds; look at `result`. Returns this object."""
        self._ended.wait(timeout)
        return self

    def stop(self) -> Capture:
        """Ends it now: a trace is written with the steps that were made. Returns this object; `wait` for its end."""
        self._stopping.set()
        return self

    def __repr__(self) -> str:
        return f"<jaxobs capture {self.name}: {self.result or 'under way'}{f', {self.detail}' if self.detail else ''}>"

    def _end(self, result: str, detail: str | None) -> None:
        self.result, self.detail = result, detail
        if result != "done":
            self.path = None

    def _tell(self) -> None:
        self._started.set()
        self._ended.set()


class Runner:
    """Runs the actions of one process. Safe for threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._thread: threads.Thread | None = None
        self._reset()

    def _reset(self) -> None:
        # Reentrant: a signal handler of the program may ask for a capture while this thread is in here.
        self._lock = threads.RLock()
        self._current: Capture | None = None
        self._began: dict[str, float] = {}
        """Time at which each action began last; one that was refused did not."""
        self._refused: float | None = None
        self._number = 0

    def after_fork(self) -> None:
        """In a forked child: nothing is under way here."""
        self._thread = None
        self._reset()

    def begin(self, action: str, given: Mapping[str, Any], origin: str, *, waits: bool = True) -> Capture:
        """Starts an action and returns when it is clear that it is not refused, or, where `waits` is not, at once.

        Raises:
          ParameterError: there is no such action, or a parameter does not fit it.
        """
        module = actions.known().get(action)
        if module is None:
            known = actions.known()
            meant = did_you_mean(str(action), known)
            raise ParameterError(f"There is no action {action!r:.100}. {meant}Known actions: {', '.join(known)}.")
        values = action_types.parsed(action, module.PARAMETERS, given)
        if isinstance(module, CheckingModule):
            module.check(self._store, values)
        with self._lock:
            capture = self._admitted(action)
            begun = capture.result is None and self._start(capture, module, values, origin)
        if not begun:
            self._record(capture, origin)
        elif waits:
            capture._started.wait(START_SECONDS)
        return capture

    def _admitted(self, action: str) -> Capture:
        """Returns a capture that may begin, or one that is refused already."""
        self._number += 1
        place = folder.directory(self._store.settings)
        name = folder.name(action, time.time(), internals.process_index_and_count()[0], self._number)
        capture = Capture(action, name, os.path.join(place, name))
        interval = self._store.settings.capture_interval
        passed = time.monotonic() - self._began.get(action, -math.inf)
        if config.disabled():
            capture._end("refused", "`JAXOBS_DISABLED` is set.")
        elif self._store.orphan:
            capture._end("refused", "This process was forked from one that used JAX, and JAX does not survive a fork.")
        elif not internals.backends_awake():
            capture._end(
                "refused",
                ("The program has not used a device yet, and jaxobs never initializes a backend. Try again later."),
            )
        elif self._current is not None:
            capture._end(
                "refused",
                f"{self._current.name} is in progress, and only one runs at a time. Try again when it has ended.",
            )
        elif passed < interval:
            capture.retry_after = interval - passed
            capture._end(
                "refused",
                f"The last `{action}` started {passed:.1f} s ago, and `capture_interval` is {interval:g} s. "
                f"Try again in {interval - passed:.1f} s.",
            )
        return capture

    def _start(self, capture: Capture, module: ActionModule, values: Mapping[str, Any], origin: str) -> bool:
        _at_exit()
        self._current = capture
        self._thread = threads.Thread(self._run, "jaxobs-action", (capture, module, values, origin))
        try:
            self._thread.start()
        except RuntimeError:  # the interpreter is on its way out
            self._current = None
            capture._end("refused", "The process is exiting.")
            return False
        return True

    def _run(self, capture: Capture, module: ActionModule, values: Mapping[str, Any], origin: str) -> None:
        began = time.monotonic()
        before = self._began.get(capture.action, -math.inf)
        self._began[capture.action] = began
        try:
            with guarded(f"action {capture.action}"):
                self._attempt(capture, module, values)
        finally:
            if capture.result is None:
                capture._end("failed", "jaxobs failed; the program's log says why.")
            capture.seconds = time.monotonic() - began
            with self._lock:
                if self._current is capture:
                    self._current = None
                if capture.result == "refused":
                    self._began[capture.action] = before
            with guarded("action.record"):
                self._record(capture, origin)

    def _attempt(self, capture: Capture, module: ActionModule, values: Mapping[str, Any]) -> None:
        try:
            place = folder.Folder(self._store.settings)
            room = place.room()
            with place.writing(capture.name, room) as unfinished:
                job = Job(self._store, values, unfinished, room, capture._stopping, capture._started.set)
                outcome = module.run(job)
                capture.bytes = folder.size(unfinished)
            capture.path = os.path.join(place.path, capture.name, *([outcome.main] if outcome.main else []))
            capture._end("done", outcome.detail)
        except Refused as refused:
            capture._end("refused", str(refused))
        except folder.CaptureTooLarge as error:
            capture._end("failed", str(error))
        except Exception as error:
            capture._end("failed", f"{type(error).__name__}: {error}"[:500])

    def _record(self, capture: Capture, origin: str) -> None:
        try:
            if capture.result == "refused" and not self._may_tell():
                self._store.drop("action_refusals")
                return
            if capture.result == "done":
                logger.info("The capture `%s` is in %s: %s", capture.action, capture.path, capture.detail)
            else:
                logger.warning("The capture `%s` was %s: %s", capture.action, capture.result, capture.detail)
            self._store.record(
                Action(
                    time=time.time(), name=capture.action, origin=origin, result=capture.result or "failed",
                    detail=capture.detail, path=capture.path,
                    bytes=capture.bytes if capture.result == "done" else None, seconds=capture.seconds,
                )
            )  # fmt: skip
        finally:
            capture._tell()

    def _may_tell(self) -> bool:
        """Returns whether a refusal may be recorded: repeated requests must not fill the log."""
        with self._lock:
            now = time.monotonic()
            if self._refused is not None and now - self._refused < _REFUSALS_EVERY:
                return False
            self._refused = now
            return True

    def end(self, timeout: float) -> None:
        """Has what is under way end early, and waits for that a while."""
        current, thread = self._current, self._thread
        if current is not None and thread is not None and thread is not threading.current_thread():
            current.stop()
            thread.join(timeout)


_runners: weakref.WeakKeyDictionary[Store, Runner] = weakref.WeakKeyDictionary()
_hooked = _registered = False


def of(store: Store) -> Runner:
    """Returns the runner of a store, made when first asked for."""
    global _hooked
    found = _runners.get(store)
    if found is None:
        found = _runners.setdefault(store, Runner(store))
        if not _hooked and hasattr(os, "register_at_fork"):
            _hooked = True
            os.register_at_fork(after_in_child=_forked)
    return found


def end(store: Store, timeout: float) -> None:
    """Has what is under way for a store end early, and waits for that a while."""
    found = _runners.get(store)
    if found is not None:
        found.end(timeout)


def _forked() -> None:
    for runner in list(_runners.values()):
        with guarded("action.fork"):
            runner.after_fork()


def _at_exit() -> None:
    """Once, at the first action: JAX is there by now, and what is registered after its own hook runs before it."""
    global _registered
    if not _registered:
        _registered = True
        atexit.register(_exiting)


def _exiting() -> None:
    for runner in list(_runners.values()):
        with guarded("action.exit"):
            runner.end(EXIT_SECONDS)
