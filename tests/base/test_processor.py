"""The processor's time of a thread, as the system tells it."""

import os
import sys
import threading
import time

import pytest
from helpers.waiting import until

from jaxobs.base.process import Processor


def _refused(*_: object) -> int:
    raise FileNotFoundError


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell of other threads")
@pytest.mark.parametrize("schedstat", (True, False))
def test_a_thread_that_computes_uses_it_and_one_that_waits_does_not(
    schedstat: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    wakes, ends = threading.Event(), threading.Event()

    def work() -> None:
        wakes.wait()
        while not ends.is_set():
            sum(range(1000))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert thread.ident is not None
    if not schedstat:
        monkeypatch.setattr(os, "open", _refused)
    processor = Processor(thread.ident)
    monkeypatch.undo()

    def passes() -> float:
        before = processor.used()
        time.sleep(0.01)
        after = processor.used()
        assert before is not None and after is not None
        return after - before

    until(lambda: passes() == 0.0, lambda: None)
    assert 0.0 <= processor.share() < 1.0
    wakes.set()
    until(lambda: passes() > 0.0, lambda: None)
    assert processor.share() > 0.0
    ends.set()
    thread.join()


def test_nothing_is_asked_of_a_thread_that_has_ended() -> None:
    """The operating system may have given its number to another thread, or crash."""
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    assert thread.ident is not None
    processor = Processor(thread.ident)
    assert processor.used() is None and processor.share() == 1.0
