"""Exceptions of the types that memory runs out with, as handlers take them: from Python 3.12 on, see `code_events`.

The interpreter reports a handled exception at every handler on its way, `with` and `finally` too, and before the
handler runs. Those of other types cost a fifth of a microsecond each; so many are looked at, and then none until
`refill`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType

from jaxobs.internals import code_events
from jaxobs.internals.source_files import is_jax, is_own, is_plumbing

MOST = 20_000
"""Handled exceptions between two refills, all types together."""

Caught = Callable[[BaseException], None]


class CaughtErrors:
    """Reports exceptions that are JAX's own, or `MemoryError` that came through JAX, at handlers outside of JAX."""

    def __init__(self, caught: Caught, most: int = MOST) -> None:
        self._caught = caught
        self._thread = threading.local()
        self._handler, self._refill = self._made(most)

    def start(self) -> bool:
        """Watches; returns whether it does."""
        return code_events.watch_handled(self._handler)

    def stop(self) -> None:
        """Watches no more."""
        code_events.unwatch_handled(self._handler)

    def refill(self) -> bool:
        """Looks at as many again; returns whether there had been too many."""
        paused = self._refill()
        if paused:
            self.start()
        return paused

    def _made(self, most: int) -> tuple[code_events.Handled, Callable[[], bool]]:
        """The handler, and what lets it look at as many again; a closure is twice as fast as a method."""
        types, see, left = _types(), self._see, most

        def handled(code: CodeType, offset: int, error: BaseException) -> None:
            nonlocal left
            left -= 1
            if isinstance(error, types):
                see(code, error)
            elif left < 0:
                code_events.pause_handled(handled)

        def refill() -> bool:
            nonlocal left
            paused, left = left < 0, most
            return paused

        return handled, refill

    def _see(self, code: CodeType, error: BaseException) -> None:
        """Inside JAX and jaxobs it only passes: code that knows more of the call may see it there."""
        if is_own(code.co_filename):
            return
        if _in_jax(code):
            self._thread.passed = id(error)
        # JAX takes its own frames out of tracebacks.
        elif not isinstance(error, MemoryError) or getattr(self._thread, "passed", None) == id(error):
            self._thread.passed = None
            self._caught(error)


def _in_jax(code: CodeType) -> bool:
    """Returns whether the handler is JAX's, or a library's that JAX has called, as `contextlib`."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    while frame is not None and is_plumbing(frame.f_code.co_filename):
        if is_jax(frame.f_code.co_filename):
            return True
        frame = frame.f_back
    return False


def _types() -> tuple[type[BaseException], ...]:
    import jax

    own = getattr(jax.errors, "JaxRuntimeError", None)
    return (MemoryError,) if own is None else (MemoryError, own)
