"""Python functions that compiled programs call: by `jax.pure_callback`, `io_callback`, `debug.callback`, `debug.print`.

From Python 3.12 on the interpreter says when JAX's code around them begins and returns; Python 3.11 says nothing of it.
"""

import functools
import sys
import weakref
from collections.abc import Callable, Iterator
from time import perf_counter
from types import CodeType, FrameType
from typing import Any

from jaxobs.base.guard import guarded
from jaxobs.internals import code_events
from jaxobs.internals.source_files import is_jax, is_plumbing, shown

_MOST_OPEN, _MOST_DEEP = 256, 12


def _codes() -> Iterator[tuple[CodeType, CodeType]]:
    """Yields the code that lowers a callback, and the code that a program then calls."""
    for value in list(getattr(sys.modules.get("jax._src.callback"), "__dict__", {}).values()):
        code: Any = getattr(value, "__code__", None)
        for inner in getattr(code, "co_consts", ()):
            if getattr(inner, "co_name", None) == "_wrapped_callback" and "callback" in inner.co_freevars:
                yield code, inner


class Watch:
    """Calls `took` twice for each call, on its thread, with the function and its line or the one that asked for it:
    with None as it begins, and with the seconds as it ends, unless it raises.
    """

    def __init__(self, took: Callable[[Any, str, float | None], None]) -> None:
        self._took = took
        self._open: dict[int, tuple[tuple[Any, str], float]] = {}
        self._known: weakref.WeakKeyDictionary[Any, tuple[Any, str]] = weakref.WeakKeyDictionary()
        self._codes: list[CodeType] = []

    def start(self) -> bool:
        """Watches; returns whether it does."""
        for lowers, calls in _codes():
            if code_events.watch(calls, self._began, self._ended) and code_events.watch(lowers, self._lowers):
                self._codes += lowers, calls
        return bool(self._codes)

    def stop(self) -> None:
        """Watches no more."""
        while self._codes:
            code_events.unwatch(self._codes.pop())

    def _lowers(self, frame: FrameType) -> None:
        with guarded("host_callbacks"):
            trace = getattr(frame.f_locals["ctx"], "traceback", None)
            lines = [(each.file_name, each.line_num) for each in getattr(trace, "frames", ())]
            line = next((f"{shown(file)}:{at}" for file, at in lines if not (is_jax(file) or is_plumbing(file))), "")
            self._known[frame.f_locals["callback"]] = _described(frame.f_locals["callback"], line)

    def _began(self, frame: FrameType) -> None:
        with guarded("host_callbacks"):
            callback = frame.f_locals["callback"]
            if callback not in self._known:  # lowered before
                self._known[callback] = _described(callback, "")
            self._took(*self._known[callback], None)
            if len(self._open) >= _MOST_OPEN:  # the end of what raises is not reported
                self._open.clear()
            self._open[id(frame)] = self._known[callback], perf_counter()

    def _ended(self, frame: FrameType, result: Any) -> None:
        now = perf_counter()
        with guarded("host_callbacks"):
            if (began := self._open.pop(id(frame), None)) is not None:
                self._took(*began[0], now - began[1])


def _described(callback: Any, line: str) -> tuple[Any, str]:
    """Returns the user's function that JAX wraps, and where it begins; `line` if it is one of JAX's."""
    function = inner = callback
    for _ in range(_MOST_DEEP):
        if inner is None:
            break
        function = inner
        code = getattr(function, "__code__", None)
        if code is not None and not is_jax(code.co_filename):
            return function, f"{shown(code.co_filename)}:{code.co_firstlineno}"
        held = zip(getattr(code, "co_freevars", ()), getattr(function, "__closure__", None) or (), strict=False)
        inner = next((cell.cell_contents for name, cell in held if name in ("callback", "callback_func")), None)
        inner = function.func if isinstance(function, functools.partial) else inner
        inner = inner or getattr(function, "callback_func", None)
    return function, line
