"""Long work in Python on a thread of ours, in small pieces: the program gets the interpreter when it asks for it.

Python lets a thread continue for 5 ms when others wait, and a program that dispatches steps waits many times. Code that
may run for long calls `offer` here and there, which does nothing unless the thread works within `politely`.
"""

import contextlib
import threading
import time
from collections.abc import Iterator
from time import perf_counter

from jaxobs.base import threads

WORK_SECONDS = 0.0005
REST_SECONDS = 0.002


class AbandonedError(Exception):
    """The work is not wanted any more."""


class _Work(threading.local):
    since: float | None = None
    stopping: threads.Event | None = None


_work = _Work()


def offer() -> None:
    """Rests if this thread works politely and has worked for long; raises `AbandonedError` if nobody waits."""
    since = _work.since
    if since is not None and perf_counter() - since > WORK_SECONDS:
        if _work.stopping is not None and _work.stopping.is_set():
            raise AbandonedError
        time.sleep(REST_SECONDS)
        _work.since = perf_counter()


@contextlib.contextmanager
def politely(stopping: threads.Event | None = None) -> Iterator[None]:
    """Lets the work of this thread in the block rest now and then, until `stopping` is set, which ends it."""
    before = _work.since, _work.stopping
    _work.since, _work.stopping = perf_counter(), stopping
    try:
        yield
    finally:
        _work.since, _work.stopping = before
