"""Calls several functions at once, and waits for none of them longer than there is time."""

import functools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from jaxobs.ops.diagnosis.evidence import clean

T = TypeVar("T")

MOST_ABANDONED = 128
"""Threads that still wait for an answer nobody waits for: with so many, nothing new is begun."""
_abandoned = threading.Semaphore(MOST_ABANDONED)


class _Task(Generic[T]):
    def __init__(self, work: Callable[[], T], places: threading.Semaphore) -> None:
        self.done = threading.Event()
        self.result: T | None = None
        self._work, self._places = work, places

    def run(self) -> None:
        try:
            self.result = self._work()
        except Exception:
            self.result = None  # As one that gave no answer in time.
        finally:
            self.done.set()
            self._places.release()


def at_once(work: Sequence[Callable[[], T]], seconds: float) -> list[T | None]:
    """Calls functions at once; returns the results in order.

    Each has a daemon thread: one that hangs keeps neither the caller nor the process.
    """
    until = time.monotonic() + seconds
    places = _abandoned
    tasks: list[_Task[T] | None] = []
    for ask in work:
        if not places.acquire(blocking=False):
            tasks.append(None)
            continue
        task = _Task(ask, places)
        threading.Thread(target=task.run, daemon=True, name="jaxobs-agent-ask").start()
        tasks.append(task)
    for waiting in tasks:
        if waiting is not None:
            waiting.done.wait(max(0.0, until - time.monotonic()))
    return [each.result if each is not None and each.done.is_set() else None for each in tasks]


def by_name(work: Mapping[str, Callable[[], T]], seconds: float) -> tuple[dict[str, T], dict[str, str]]:
    """Calls functions at once; returns their results, and why the others have none."""

    def tried(ask: Callable[[], T]) -> tuple[T | None, str]:
        try:
            return ask(), ""
        except Exception as error:  # Clients raise errors of several libraries.
            status = getattr(error, "status", None)
            return None, f"HTTP {status}" if status else clean(f"{type(error).__name__}: {error}", 200)

    found: dict[str, T] = {}
    problems: dict[str, str] = {}
    answers = at_once([functools.partial(tried, each) for each in work.values()], seconds)
    for name, answer in zip(work, answers, strict=True):
        result, problem = answer or (None, f"no answer within {seconds:g} s")
        if result is None:
            problems[name] = problem
        else:
            found[name] = result
    return found, problems
