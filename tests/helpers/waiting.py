"""Waiting until something holds: never for a time after which it should."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

HANG_SECONDS = 120.0
"""Seconds after which a test gives up: long enough for the busiest machine."""


def until(condition: Callable[[], T], told: Callable[[], object] = lambda: "it never held") -> T:
    """The first true value of the condition.

    Args:
      condition: is asked every 20 ms.
      told: what an error says when it never holds.
    """
    deadline = time.monotonic() + HANG_SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline, told()
        time.sleep(0.02)
    return found
