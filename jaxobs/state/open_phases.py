"""Phases of compilations that have begun: those that are open, and those that an exception has just ended."""

import dataclasses
import time
from collections.abc import Callable

from jaxobs.facts.compilations import PHASES, OpenCompilation

Read = Callable[[OpenCompilation], OpenCompilation]
"""Finds out about a phase that begins a compilation."""

UNFINISHED_SECONDS = 60.0
"""Time after an exception within which a process ends by it, and not by something else."""

MOST_LATEST = 256
"""Threads of which the latest phase is remembered."""
BETWEEN_SECONDS = 1.0
"""Time between two phases of one compilation, at most: a program may lower now, and compile that later."""


def unread(phase: OpenCompilation) -> OpenCompilation:
    """Returns the phase as it is."""
    return phase


def _gone_on(before: OpenCompilation, ended: float, phase: OpenCompilation) -> OpenCompilation | None:
    """Returns a phase with what is known from the one before it, if both belong to the same compilation."""
    if before.ended is not None or phase.started - ended > BETWEEN_SECONDS:
        return None
    if PHASES.index(before.phase) >= PHASES.index(phase.phase):
        return None
    names = {each.function.rpartition(".")[2] for each in (before, phase)}
    return dataclasses.replace(before, phase=phase.phase, started=phase.started) if len(names) == 1 else None


class OpenPhases:
    """A stack of open phases for each thread, and what became of the outermost of them."""

    def __init__(self) -> None:
        self._open: dict[int, list[OpenCompilation]] = {}
        self._latest: dict[int, tuple[OpenCompilation, float]] = {}
        """The outermost phase that ended last on each thread, unless it finished a compilation; and when it ended."""

    def begin(self, thread: int, phase: OpenCompilation, read: Read = unread) -> None:
        """A phase began on a thread; `read` finds out about one that begins a compilation."""
        before, stack = self._latest.pop(thread, None), self._open.get(thread)
        if not stack:
            going_on = None if before is None else _gone_on(*before, phase)
            phase = going_on or dataclasses.replace(read(phase), began=phase.started)
        self._open.setdefault(thread, []).append(phase)

    def end(self, thread: int, phase: str, failed: float | None = None) -> None:
        """The innermost open phase of that name ended on a thread, and with it all that it contained.

        Args:
          failed: time at which an exception ended it.
        """
        stack = self._open.get(thread)
        if stack is None:
            return
        for position in range(len(stack) - 1, -1, -1):
            if stack[position].phase == phase:
                outermost = stack[0]
                del stack[position:]
                break
        else:
            return
        if not stack:
            self._open.pop(thread, None)
            if failed is not None or phase != "compile":
                if len(self._latest) >= MOST_LATEST:
                    del self._latest[next(iter(self._latest))]
                self._latest[thread] = dataclasses.replace(outermost, ended=failed), time.time()

    def unfinished(self, now: float) -> tuple[OpenCompilation, ...]:
        """The compilations that an exception has just ended, on threads that have compiled nothing since."""
        since = now - UNFINISHED_SECONDS
        latest = [phase for phase, _ in list(self._latest.values())]
        return tuple(each for each in latest if each.ended is not None and each.ended >= since)

    def clear(self) -> None:
        """Forgets them: their ends were lost."""
        self._open.clear()
        self._latest.clear()

    def outermost(self) -> tuple[OpenCompilation, ...]:
        """The outermost open phase of each thread."""
        stacks = [list(stack) for stack in list(self._open.values())]
        return tuple(stack[0] for stack in stacks if stack)

    def all(self) -> tuple[OpenCompilation, ...]:
        """Both of them: what was being compiled, if the process ends now."""
        return (*self.outermost(), *self.unfinished(time.time()))
