"""Functions of JAX whose runs the interpreter tells of: `sys.monitoring` for single code objects, from Python 3.12 on.

All that jaxobs watches this way shares one tool number, taken while something is watched. Nothing is replaced, and code
that is not watched runs as ever. Who leaves by an exception is not told of: see `Began` and `Ended`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

MONITORS = hasattr(sys, "monitoring")

TOOL = "jaxobs"
_TOOLS = (3, 4)  # those that Python's documentation assigns to nobody

Began = Callable[[FrameType], None]
"""Called with the frame of the code when it begins."""
Ended = Callable[[FrameType, Any], None]
"""Called with the frame and with what it returns; not where it raises."""

_lock = threading.RLock()
_tool: int | None = None
_watched: dict[int, tuple[CodeType, Began | None, Ended | None]] = {}
"""By the number of the code object, which is kept alive here: to hash code itself is dear."""


def watch(code: CodeType, began: Began | None = None, ended: Ended | None = None) -> bool:
    """Tells of every run of `code` from now on; False where this Python cannot, or others have both free numbers."""
    global _tool
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is None:
        return False
    with _lock:
        if _tool is None:
            _tool = _take_tool(monitoring)
            if _tool is None:
                return False
        events = monitoring.events
        _watched[id(code)] = (code, began, ended)
        wanted = (0 if began is None else events.PY_START) | (0 if ended is None else events.PY_RETURN)
        monitoring.set_local_events(_tool, code, wanted)
    return True


def unwatch(code: CodeType) -> None:
    """Tells of it no more; with the last one the tool number is given back."""
    global _tool
    monitoring: Any = getattr(sys, "monitoring", None)
    with _lock:
        if _watched.pop(id(code), None) is None or _tool is None or monitoring.get_tool(_tool) != TOOL:
            return
        monitoring.set_local_events(_tool, code, 0)
        if not _watched:
            tool, _tool = _tool, None
            for event in (monitoring.events.PY_START, monitoring.events.PY_RETURN):
                monitoring.register_callback(tool, event, None)
            monitoring.free_tool_id(tool)


def reset_lock() -> None:
    """In a forked child: whoever held the lock is not there."""
    global _lock
    _lock = threading.RLock()


def _take_tool(monitoring: Any) -> int | None:
    for tool in _TOOLS:
        if monitoring.get_tool(tool) is None:
            try:
                monitoring.use_tool_id(tool, TOOL)
            except ValueError:  # somebody was faster
                continue
            monitoring.register_callback(tool, monitoring.events.PY_START, _on_start)
            monitoring.register_callback(tool, monitoring.events.PY_RETURN, _on_return)
            return tool
    return None


def _on_start(code: CodeType, offset: int) -> None:
    watched = _watched.get(id(code))
    if watched is not None and watched[1] is not None:
        watched[1](sys._getframe(1))


def _on_return(code: CodeType, offset: int, result: object) -> None:
    watched = _watched.get(id(code))
    if watched is not None and watched[2] is not None:
        watched[2](sys._getframe(1), result)
