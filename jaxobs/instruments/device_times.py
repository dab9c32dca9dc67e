"""Device time of some calls, found without waiting for them.

At most about once a second a window opens: the calls of instrumented functions that come one after the other are taken
in, each with the smallest of its outputs, until the first of them has come round again. A thread asks the outputs
whether they are there. A call has the device from when it was begun, or from when the call before it was done where
that is later; so the time that it was in the queue does not count, and the first call of a window has no figure.

The figure is an upper bound. It holds whatever else the device did between the two calls (single operations, functions
that are not instrumented), waiting for arguments that were not there yet, and, where the device was idle, the
dispatch. It is too high by what passed between two looks, at most 1 ms or a tenth; what was seen less sharply is left
out and counted. Of several devices it is the time of the last to end, from that of the last to end the call before.
Devices run one program after the other; where a CPU runs two at once, the one begun later counts for less than it took.

Nothing large is kept: an output of more than 4 KiB is held by a weak reference, and is lost when the program releases
it. One that is donated meanwhile is lost as well.
"""

from __future__ import annotations

import atexit
import operator
import os
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from jaxobs import internals
from jaxobs.base import threads
from jaxobs.base.arrivals import deleted
from jaxobs.base.guard import guard
from jaxobs.state.call_stats import CallStats

WINDOW_SECONDS = 1.0
"""From the beginning of a window to the next."""
MOST_CALLS = 16
"""Calls taken in by one window; the next does not open before all of them are settled."""
BUDGET = 0.001
"""Share of a core that the looks may take: after a window that took more, the next one waits for longer."""
MOST_HELD_BYTES = 4096
RESOLUTION_SECONDS = 1e-3
RESOLUTION_SHARE = 0.1
MOST_WAIT_SECONDS = 600.0
"""How long an output is asked for: a device may hang."""
_MOST_LEAVES = 64
_LEAST_PAUSE, _MOST_PAUSE = 2e-4, 0.05
_LOOKS_PER_CALL = 40
_PAUSE_SHARE = 0.003
"""Share of the time waited so far at which to look again. JAX queues some tens of programs on a device at most."""
_WAKING_SECONDS = 1e-5
"""Approximate seconds that it takes to wake the thread for a look."""
_REST_SECONDS = 10.0
"""How long the thread waits for more before it ends."""
_EXIT_PATIENCE = 0.5


@dataclass(frozen=True, slots=True)
class Returned:
    """A call that has returned."""

    stats: CallStats
    result: Any
    began: float
    """By `perf_counter`, as all times here."""
    ended: float
    everybody: Sequence[CallStats]
    """Counters of all functions, so that a call that was not seen does not pass unnoticed."""
    size: int | None
    """How many programs the function has: a call that compiled has no device time. None where it does not tell."""
    compiled: int | None
    """How many were compiled in this process; None if nobody sees that."""


@dataclass(slots=True, eq=False)
class _Call:
    """A call whose outputs are waited for."""

    stats: CallStats
    began: float
    returned: float
    devices: Any
    leaf: Callable[[], Any] | None
    """The output, if it is still there; None once it was seen to be ready, or lost."""
    not_before: float
    """The device was still at it then."""
    done: float | None = None
    """The moment at which the output was seen to be there."""
    lead: _Call | None = None
    """The call before it on these devices; None if it is not known or this one is not to be reported."""
    lost: str | None = None

    @property
    def settled(self) -> bool:
        return self.leaf is None

    def look(self) -> None:
        """Asks the output, and releases it when there is nothing more to ask."""
        now = perf_counter()
        array = None if self.leaf is None else self.leaf()
        if array is None:
            self._lose("collected")
            return
        try:
            if deleted(array):
                self._lose("deleted")
            elif array.is_ready():
                self.done, self.leaf = perf_counter(), None
            elif now - self.began > MOST_WAIT_SECONDS:
                self._lose("unready")
            else:
                self.not_before = now
        except RuntimeError:  # deleted in between
            self._lose("deleted")

    def _lose(self, why: str) -> None:
        self.lost, self.leaf = why, None

    def tell(self) -> None:
        """Writes down the device time, or why there is none; both this call and the one before it are settled."""
        lead, self.lead = self.lead, None
        if lead is None:
            return
        if self.done is None or lead.done is None:
            self.stats.device_skip(self.lost or lead.lost or "unready")
            return
        seconds = self.done - max(self.began, lead.not_before)
        if seconds <= 0:  # of two that ran side by side on a CPU
            self.stats.device_skip("overlapped")
            return
        unsure = self.done - self.not_before
        if lead.done > self.began:
            unsure += lead.done - lead.not_before
        self.stats.device_expected = seconds
        if unsure > max(RESOLUTION_SECONDS, RESOLUTION_SHARE * seconds):
            self.stats.device_skip("late")
        else:
            self.stats.device_took(seconds)


class DeviceTimes:
    """The calls of one process that are waited for; see `Store.part`."""

    def __init__(self) -> None:
        # Reentrant: a signal handler of the program may call in while this thread is in here.
        self._lock = threads.RLock()
        self._pending: deque[_Call] = deque()
        self._window: list[_Call] | None = None
        self._left = 0
        self._countdown = 0
        self._compiled: int | None = None
        self._running = False
        self._spent = 0.0
        """Seconds of a core that the looks of this window took."""
        self._rest_until = 0.0
        # Held while the thread has nothing to do. Unlike an event's, its release can be interrupted by a signal's.
        self._wake = threads.Lock()
        self._wake.acquire()
        _instances.add(self)

    # ------------------------------------------------------------------------------------- the program's thread

    def take(self, returned: Returned) -> None:
        """Takes in a call, where a window is open or is to open. Waits for nobody."""
        if _exiting:
            return
        stats = returned.stats
        before, stats.programs = stats.programs, returned.size
        known = returned.compiled is not None if returned.size is None else returned.size == before
        call = _call(returned)
        if not self._lock.acquire(blocking=False):
            return  # the next call will find that one is missing
        try:
            self._take(returned, call, known)
            starts = bool(self._pending) and not self._running
            self._running = self._running or starts
        finally:
            self._lock.release()
        if starts:
            self._start()
        elif self._pending:
            with suppress(RuntimeError):  # it is awake
                self._wake.release()

    def _take(self, returned: Returned, call: _Call | None, known: bool) -> None:
        countdown = sum(operator.length_hint(each.counter) for each in returned.everybody)
        follows = self._countdown - countdown == 1
        same = known and self._compiled == returned.compiled
        self._countdown, self._compiled = countdown, returned.compiled
        window = self._window
        if window is None:
            if call is None or self._pending or returned.began < self._rest_until:
                returned.stats.device_due = max(returned.began + WINDOW_SECONDS, self._rest_until)
                return
            window = self._open(returned)
        elif not follows:
            window.clear()
        self._left -= 1
        if call is not None:
            earlier = (each for each in reversed(window) if each.returned <= call.began)
            if same:
                call.lead = next((each for each in earlier if each.devices == call.devices), None)
            window.append(call)
            self._pending.append(call)
        round_again = call is not None and call.lead is not None and call.stats is window[0].stats
        if round_again or self._left <= 0:
            self._close(returned)
        self._settle()

    def _open(self, returned: Returned) -> list[_Call]:
        self._left = MOST_CALLS
        self._window = []
        for stats in returned.everybody:
            stats.device_due = 0.0
            if stats is not returned.stats:
                stats.see(MOST_CALLS)
        return self._window

    def _close(self, returned: Returned) -> None:
        self._window = None
        for each in (*returned.everybody, returned.stats):
            each.device_due = returned.began + WINDOW_SECONDS

    # -------------------------------------------------------------------------------------------- who looks

    def _start(self) -> None:
        global _registered
        if not _registered:
            _registered = True
            atexit.register(_exit)  # runs before JAX's own, which was registered before
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=_instances.clear)
        try:
            threads.Thread(target=_run, args=(self,), name="jaxobs-device-times").start()
        except RuntimeError:  # no threads any more, at the interpreter's exit
            self.forget()

    def look(self) -> None:
        """Asks all outputs that are waited for."""
        began = time.thread_time()
        with self._lock:
            for call in self._pending:
                if not call.settled:
                    call.look()
            self._settle()
            self._spent += time.thread_time() - began + _WAKING_SECONDS
            if not self._pending:
                self._rest_until, self._spent = perf_counter() + self._spent / BUDGET, 0.0

    def _settle(self) -> None:
        while self._pending and self._pending[0].settled:
            self._pending.popleft().tell()

    def forget(self) -> None:
        """Releases everything that is waited for."""
        with self._lock:
            self._pending.clear()
            self._window = None

    def pause(self) -> float | None:
        """Seconds until the next look; None if nothing is waited for."""
        with self._lock:
            if not self._pending:
                return None
            waited = perf_counter() - self._pending[0].began
            expected = min(each.stats.device_expected for each in self._pending)
        return min(max(expected / _LOOKS_PER_CALL, waited * _PAUSE_SHARE, _LEAST_PAUSE), _MOST_PAUSE)

    def rest(self) -> bool:
        """Waits for more; whether the thread may end, since none came."""
        if self._wake.acquire(timeout=_REST_SECONDS):
            return False
        with self._lock:
            self._running = bool(self._pending)
            return not self._running


@guard("device_times.thread")
def _run(times: DeviceTimes) -> None:
    while not _exiting:
        pause = times.pause()
        if pause is not None:
            time.sleep(pause)
            if not _exiting:
                times.look()
        elif times.rest():
            return


_instances: weakref.WeakSet[DeviceTimes] = weakref.WeakSet()
_registered = False
_exiting = False


@guard("device_times.exit")
def _exit() -> None:
    """At the interpreter's exit: no more looks, for JAX forgets its backends next."""
    global _exiting
    _exiting = True
    for times in list(_instances):
        if times._lock.acquire(timeout=_EXIT_PATIENCE):
            times.forget()
            times._lock.release()


# ------------------------------------------------------------------------------------------------- outputs


def _output(result: Any) -> tuple[Any, bool] | None:
    """Returns the smallest output that is not there yet, or any, and whether it is there; None if nothing tells."""
    leaves = [result]
    if not hasattr(type(result), "is_ready"):
        tree_util = internals.tree_util()
        try:
            leaves = [] if tree_util is None else tree_util.tree_leaves(result)
        except Exception:  # the user's own type
            return None
    some = leaves if len(leaves) <= _MOST_LEAVES else leaves[: _MOST_LEAVES // 2] + leaves[-_MOST_LEAVES // 2 :]
    arrays = [each for each in some if hasattr(type(each), "is_ready")]
    try:
        waiting = [each for each in arrays if not each.is_ready()]
    except RuntimeError:  # deleted: the function gives away what it returns
        return None
    if waiting:
        return min(waiting, key=operator.attrgetter("nbytes")), False
    return (arrays[0], True) if arrays and len(some) == len(leaves) else None


def _call(returned: Returned) -> _Call | None:
    found = _output(returned.result)
    if found is None:
        return None
    array, ready = found
    began, ended, devices = returned.began, returned.ended, array.sharding.device_set
    if ready:
        # A CPU runs small programs within the call; any other device has been done for we do not know how long.
        since = ended if next(iter(devices)).platform == "cpu" else began
        return _Call(returned.stats, began, ended, devices, leaf=None, not_before=since, done=ended)
    leaf = weakref.ref(array) if array.nbytes > MOST_HELD_BYTES else (lambda: array)
    return _Call(returned.stats, began, ended, devices, leaf, not_before=ended)
