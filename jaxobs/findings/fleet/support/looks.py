"""Looks at the main thread: whether it is inside JAX, or at which line of the program's own."""

import threading
from collections import Counter, deque
from collections.abc import Callable, Container
from types import FrameType

from jaxobs.base import threads
from jaxobs.base.guard import guarded
from jaxobs.internals.source_files import calls_jitted, in_library, is_jax, is_own, is_plumbing, line_number, shown
from jaxobs.loops import positions

MOST_LOOKS = 40
FEWEST_LOOKS = 10
_MOST_FRAMES = 200


class Looks:
    """The latest looks."""

    def __init__(self) -> None:
        self._looks: deque[tuple[bool, str]] = deque(maxlen=MOST_LOOKS)
        self._in_steps: deque[bool] = deque(maxlen=MOST_LOOKS)

    def look(self, sites: Container[str] = (), *, pauses: bool = False) -> None:
        """Looks once. Nothing is read but file names, line numbers and the name of what is called.

        Args:
          sites: lines, `file:line`, from which compiled functions are called. Their fast path has no frame of Python:
            a thread whose innermost frame is there waits in it.
          pauses: whether no step has been made for longer than a step takes.
        """
        with threads.current_frames() as frames:
            inside, line = _place(frames.get(threading.main_thread().ident or 0), sites)
        self._looks.append((inside, line))
        if not pauses:
            self._in_steps.append(inside)

    @property
    def inside(self) -> bool:
        """Whether the thread was inside JAX at the last look."""
        return bool(self._looks) and self._looks[-1][0]

    @property
    def at(self) -> str:
        """`file:line` of the program's own code at the last look; empty if none was in sight."""
        return self._looks[-1][1] if self._looks else ""

    @property
    def waiting(self) -> float | None:
        """Share of the looks at which it was inside JAX; None as long as there were too few."""
        return _share([inside for inside, _ in list(self._looks)])

    @property
    def waiting_in_steps(self) -> float | None:
        """Share of the looks at which it was inside JAX, without the looks during pauses."""
        return _share(list(self._in_steps))

    @property
    def line(self) -> str:
        """`file:line` where it was most often when it was not inside JAX; empty if none is known."""
        lines = Counter(line for inside, line in list(self._looks) if line and not inside)
        return lines.most_common(1)[0][0] if lines else ""


def _place(frame: FrameType | None, sites: Container[str]) -> tuple[bool, str]:
    """Returns whether a thread is inside JAX, and `file:line` of the program's own code; empty if none is in sight."""
    inside, line, count = frame is not None and _calls_jax(frame, sites), "", 0
    while frame is not None and not line and count < _MOST_FRAMES:
        name = frame.f_code.co_filename
        # Called from a wrapper of ours, it is in JAX as well: its fast path has no frame of Python.
        inside = inside or is_jax(name) or (is_own(name) and count == 0)
        line = "" if is_plumbing(name) else f"{shown(name)}:{line_number(frame)}"
        frame, count = frame.f_back, count + 1
    return inside, line


def _share(looks: list[bool]) -> float | None:
    return sum(looks) / len(looks) if len(looks) >= FEWEST_LOOKS else None


def _calls_jax(frame: FrameType, sites: Container[str]) -> bool:
    """Returns whether the innermost frame is in a call of JAX's C++, for all that can be seen."""
    name = frame.f_code.co_filename
    if not positions.calls(frame.f_code, frame.f_lasti):
        return False
    path = in_library(name)
    if path is not None and calls_jitted(path):
        return True
    waits = positions.calls(frame.f_code, frame.f_lasti, "block_until_ready")
    return waits or f"{shown(name)}:{frame.f_lineno}" in sites


LOOK_SECONDS = 0.5
LOOKS_A_TICK = 10
REST_SECONDS = 0.25
"""At least between two tellings: what comes meanwhile is reported together."""
REST_PER_PROCESS = 0.001
"""Longer in large jobs: process 0 reads what all of them tell."""


class Looker:
    """Looks until it is stopped; a daemon thread that nobody waits for."""

    def __init__(self, interval: float, processes: int, look: Callable[[], None], tell: Callable[[], None]) -> None:
        """Begins.

        Args:
          interval: seconds between two ticks.
          processes: how many the job has.
          look: called at most `LOOK_SECONDS` after the last time.
          tell: called after `wake`.

        Raises:
          RuntimeError: the interpreter ends and refuses new threads.
        """
        self._every = min(LOOK_SECONDS, interval / LOOKS_A_TICK)
        self._rest = max(REST_SECONDS, processes * REST_PER_PROCESS)
        self._look, self._tell = look, tell
        self._woken, self._stopped = threads.Event(), threads.Event()
        threads.Thread(target=self._run, name="jaxobs-fleet-looks").start()

    def wake(self) -> None:
        """There is something to tell; the caller does not wait."""
        self._woken.set()

    def stop(self) -> None:
        """Looks and tells no more."""
        self._stopped.set()
        self._woken.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            if self._woken.wait(self._every):
                if self._stopped.is_set():
                    return
                self._woken.clear()
                with guarded("fleet.tell"):
                    self._tell()
                self._stopped.wait(self._rest)
            else:
                with guarded("fleet.look"):
                    self._look()
