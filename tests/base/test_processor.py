"""The processor's time of a thread, as the system tells it."""

from __future__ import annotations

import sys
import threading
import time

import pytest
from helpers.waiting import until

from jaxobs.base.processor import Processor


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell of other threads")
@pytest.mark.parametrize("schedstat", (True, False))
def test_a_thread_that_computes_uses_it_and_one_that_waits_does_not(schedstat: bool) -> None:
    wakes, ends = threading.Event(), threading.Event()

    def work() -> None:
        wakes.wait()
        while not ends.is_set():
            sum(range(1000))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert thread.ident is not None
    processor = Processor(thread.ident) if schedstat else _without_the_file(thread.ident)

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


def _without_the_file(ident: int) -> Processor:
    """Returns the processor's time of a thread as where its number is not known."""
    known, threading.enumerate = threading.enumerate, list  # type: ignore[assignment]
    try:
        return Processor(ident)
    finally:
        threading.enumerate = known  # type: ignore[assignment]
