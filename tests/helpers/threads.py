"""Work on several threads at once, and on one other thread."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

OFTEN = 1e-6
"""Seconds between two turns of threads that interleave as much as they can."""


def at_once(threads: int, work: Callable[[int], object], *, interval: float | None = None) -> None:
    """Calls `work` on so many threads from one moment on, with the number of each, and raises what one of them raises.

    Args:
      interval: seconds after which threads take turns.
    """
    usual, start = sys.getswitchinterval(), threading.Barrier(threads)

    def begin(number: int) -> None:
        start.wait()
        work(number)

    sys.setswitchinterval(interval or usual)
    try:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(begin, range(threads)))
    finally:
        sys.setswitchinterval(usual)


def elsewhere(*actions: Callable[[], Any]) -> Any:
    """Does actions one after the other on another thread, and returns what the last of them returns."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: [action() for action in actions]).result()[-1]
