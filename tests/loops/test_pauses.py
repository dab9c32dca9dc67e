"""The thread that ends the pauses of seeing calls."""

import threading

from helpers.waiting import until

from jaxobs.loops.pauses import Pauses


class _StoppedMeanwhile(threading.Event):
    """Somebody stops the pauses just when one of them is over."""

    def __init__(self, pauses: Pauses) -> None:
        super().__init__()
        self._pauses = pauses

    def wait(self, timeout: float | None = None) -> bool:
        was = self.is_set()
        self._pauses.stop()
        return was


def test_the_thread_ends_if_it_is_stopped_at_the_end_of_a_pause() -> None:
    ended: list[int] = []
    pauses = Pauses(lambda: ended.append(1))
    pauses._stopped = _StoppedMeanwhile(pauses)
    pauses.begin()
    until(lambda: not any(each.name == "jaxobs-found-loops" for each in threading.enumerate()), threading.enumerate)
    assert ended == []
    assert pauses._thread is not None


def test_a_pause_ends() -> None:
    ended = threading.Event()
    pauses = Pauses(ended.set)
    pauses.begin()
    until(ended.is_set, lambda: None)
    pauses.stop()
    assert pauses._thread is not None
    pauses._thread.join(10)
    assert not pauses._thread.is_alive()
