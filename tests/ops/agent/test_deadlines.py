"""Several things at once: nobody is waited for longer than there is time."""

import threading

import pytest
from helpers.waiting import until

from jaxobs.ops.agent import deadlines


def test_what_hangs_is_left_behind() -> None:
    """The results of the others are there, in order; what raises has none."""
    release = threading.Event()

    def hangs() -> int:
        release.wait(100)
        return 1

    def fails() -> int:
        raise ValueError("made on purpose")

    try:
        assert deadlines.at_once([hangs, lambda: 2, fails, lambda: 4], 0.5) == [None, 2, None, 4]
    finally:
        release.set()


def test_those_left_behind_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "_abandoned", threading.Semaphore(2))
    release = threading.Event()
    deadlines.at_once([lambda: release.wait(100)] * 2, 0.01)
    assert deadlines.at_once([lambda: 1], 5) == [None]
    release.set()
    until(lambda: deadlines.at_once([lambda: 1], 5) == [1])
