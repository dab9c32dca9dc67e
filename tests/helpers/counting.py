"""Counts of what code does: calls, instructions and blocks of memory, which nothing else on the machine moves."""

from __future__ import annotations

import gc
import sys
import threading
from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any


def calls(fun: Callable[[], object]) -> Counter[str]:
    """How often each function is called while `fun()` runs, by name; functions in C with `C ` before their name."""
    found: Counter[str] = Counter()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            found[frame.f_code.co_qualname] += 1
        elif event == "c_call":
            found[f"C {argument.__qualname__}"] += 1

    before = sys.getprofile()
    with _no_collection():
        sys.setprofile(note)
        try:
            fun()
        finally:
            sys.setprofile(before)
    found["C setprofile"] -= 1
    return +found - Counter({getattr(getattr(fun, "__code__", None), "co_qualname", ""): 1})


def instructions(fun: Callable[[], object]) -> int:
    """How many instructions of Python run in `fun()` and what it calls; other versions of Python have others."""
    with _no_collection():
        count = _monitored if hasattr(sys, "monitoring") else _traced
        return count(fun) - count(lambda: None)


def _traced(fun: Callable[[], object]) -> int:
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        fun()
    finally:
        sys.settrace(before)
    return count


def _monitored(fun: Callable[[], object]) -> int:
    """From Python 3.12 on, which does not trace the instructions of a function that is called."""
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
    event, own, count = monitoring.events.INSTRUCTION, threading.get_ident(), 0

    def note(code: CodeType, offset: int) -> None:
        nonlocal count
        if threading.get_ident() == own:
            count += 1

    tool = next(number for number in range(6) if monitoring.get_tool(number) is None)
    monitoring.use_tool_id(tool, "counting")
    monitoring.register_callback(tool, event, note)
    monitoring.set_events(tool, event)
    try:
        fun()
    finally:
        monitoring.set_events(tool, 0)
        monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)
    return count


def kept_blocks(fun: Callable[[], object], times: int = 100) -> float:
    """Blocks of memory that each `fun()` leaves behind."""
    fun()
    repeated = range(times)
    with _no_collection():
        before = sys.getallocatedblocks()
        for _ in repeated:
            fun()
        return (sys.getallocatedblocks() - before) / times


class _no_collection:  # noqa: N801 - a block
    """Nothing is collected in the block: callbacks of collectors would count."""

    def __enter__(self) -> None:
        self._enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *error: object) -> None:
        if self._enabled:
            gc.enable()
