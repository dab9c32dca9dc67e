"""Functions of JAX whose runs the interpreter reports: `sys.monitoring` for single code objects, from Python 3.12 on.

All that jaxobs watches this way shares one tool number, taken while something is watched. Nothing is replaced, and code
that is not watched runs as ever. Ends by an exception are not reported: see `Began` and `Ended`. Of exceptions that
a handler takes it says for all code at once, since Python offers no less: calls cost what they did, an exception more.
"""

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from jaxobs.base import threads

MONITORS = hasattr(sys, "monitoring")

TOOL = "jaxobs"
_TOOLS = (3, 4)  # those that Python's documentation assigns to nobody

Began = Callable[[FrameType], None]
"""Called with the frame of the code when it begins."""
Ended = Callable[[FrameType, Any], None]
"""Called with the frame and with what it returns; not where it raises."""

Handled = Callable[[CodeType, int, BaseException], None]
"""Called with the code that has a handler for an exception, an offset, and the exception; must not raise."""

_lock = threads.RLock()
_tool: int | None = None
_watched: dict[int, tuple[tuple[CodeType, Began | None, Ended | None], ...]] = {}
"""By the number of the code object, which is kept alive here: to hash code itself is expensive."""

_handled: Handled | None = None


def watch(code: CodeType, began: Began | None = None, ended: Ended | None = None) -> bool:
    """Reports every run of `code` from now on; False where this Python cannot, or others have both free numbers."""
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is None:
        return False
    with _lock:
        if not _has_tool(monitoring):
            return False
        _watched[id(code)] = (*_watched.get(id(code), ()), (code, began, ended))
        _set_events(monitoring, code)
    return True


def unwatch(code: CodeType, ended: Ended | None = None) -> None:
    """Reports it no more, or no more to `ended`; with the last one the tool number is given back."""
    monitoring: Any = getattr(sys, "monitoring", None)
    with _lock:
        watched = _watched.pop(id(code), ())
        left = tuple(each for each in watched if ended is not None and each[2] != ended)
        if left:
            _watched[id(code)] = left
        if watched and _is_ours(monitoring):
            _set_events(monitoring, code)
            _give_back(monitoring)


def _set_events(monitoring: Any, code: CodeType) -> None:
    events, watched = monitoring.events, _watched.get(id(code), ())
    starts = events.PY_START if any(began is not None for _, began, _ in watched) else 0
    returns = events.PY_RETURN if any(ended is not None for _, _, ended in watched) else 0
    monitoring.set_local_events(_tool, code, starts | returns)


def watch_handled(handled: Handled) -> bool:
    """Reports every exception that a handler takes from now on; False as for `watch`, or if somebody watches them."""
    global _handled
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is None:
        return False
    with _lock:
        if _handled not in (None, handled) or not _has_tool(monitoring):
            return False
        _handled = handled
        monitoring.register_callback(_tool, monitoring.events.EXCEPTION_HANDLED, handled)
        monitoring.set_events(_tool, monitoring.events.EXCEPTION_HANDLED)
    return True


def pause_handled(handled: Handled) -> None:
    """Reports none until `watch_handled` is called again; the tool number is kept."""
    monitoring: Any = getattr(sys, "monitoring", None)
    with _lock:
        if _handled == handled and _is_ours(monitoring):
            monitoring.set_events(_tool, 0)


def unwatch_handled(handled: Handled) -> None:
    """Reports none any more; with the last that is watched the tool number is given back."""
    global _handled
    monitoring: Any = getattr(sys, "monitoring", None)
    with _lock:
        if _handled != handled:
            return
        _handled = None
        if _is_ours(monitoring):
            monitoring.set_events(_tool, 0)
            monitoring.register_callback(_tool, monitoring.events.EXCEPTION_HANDLED, None)
            _give_back(monitoring)


def _is_ours(monitoring: Any) -> bool:
    return _tool is not None and monitoring.get_tool(_tool) == TOOL


def _has_tool(monitoring: Any) -> bool:
    global _tool
    if _tool is None:
        _tool = _take_tool(monitoring)
    return _tool is not None


def _give_back(monitoring: Any) -> None:
    global _tool
    if _watched or _handled is not None:
        return
    tool, _tool = _tool, None
    for event in (monitoring.events.PY_START, monitoring.events.PY_RETURN):
        monitoring.register_callback(tool, event, None)
    monitoring.free_tool_id(tool)


def reset_lock() -> None:
    """In a forked child: whoever held the lock is not there."""
    global _lock
    _lock = threads.RLock()


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
    for _, began, _ in _watched.get(id(code), ()):
        if began is not None:
            began(sys._getframe(1))


def _on_return(code: CodeType, offset: int, result: object) -> None:
    for _, _, ended in _watched.get(id(code), ()):
        if ended is not None:
            ended(sys._getframe(1), result)
