"""A clock for what jaxobs measures in the process of the tests, which a busy machine does not touch."""

from __future__ import annotations

import importlib
import sys
import time

import pytest

from jaxobs.state import store
from jaxobs.state.wall import Wall

_LAZY = ("jaxobs.instruments.inputs", "jaxobs.instruments.stepping", "jaxobs.loops.found_loops")
"""Modules that read the clock and may not have been imported yet."""


class Clock:
    """Stands in for `time.perf_counter` throughout jaxobs: it goes on when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = time.perf_counter()
        for name in _LAZY:
            importlib.import_module(name)
        for name, module in list(sys.modules.items()):
            if name.startswith("jaxobs.") and getattr(module, "perf_counter", None) is time.perf_counter:
                monkeypatch.setattr(module, "perf_counter", self)
        wall = store.current().part(Wall)
        monkeypatch.setattr(wall, "_clock", self)

    def __call__(self) -> float:
        return self.now

    def time(self) -> float:
        """Stands in for `time.time`."""
        return 1.7e9 + self.now

    def sleep(self, seconds: float) -> float:
        """Lets so many seconds pass, and returns them."""
        self.now += seconds
        return seconds


class ByHand:
    """A clock for one object, which goes on when the test says so."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
