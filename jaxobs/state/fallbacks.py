"""Operators that a lazy framework ran on the CPU, because it has no lowering of them."""

import time

from jaxobs.base import threads
from jaxobs.facts.compilations import OTHER
from jaxobs.facts.fallbacks import FallbackState

MOST_OPERATORS = 50
"""Operators with figures of their own; what comes later shares `<other>`."""


class Fallbacks:
    """All of one process; see `Store.part`."""

    def __init__(self) -> None:
        self._lock = threads.RLock()  # reentrant: a signal handler of the program may run operators
        self._rows: dict[str, tuple[int, float, str | None]] = {}

    def ran(self, operator: str, count: int, now: float | None = None) -> bool:
        """Counts runs of an operator; returns whether its line is still unknown."""
        with self._lock:
            operator = operator if operator in self._rows or len(self._rows) < MOST_OPERATORS else OTHER
            before, since, where = self._rows.get(operator, (0, time.time() if now is None else now, None))
            self._rows[operator] = before + count, since, where
            return where is None and operator != OTHER

    def found(self, operator: str, where: str) -> None:
        """Keeps the line that calls an operator."""
        with self._lock:
            if operator in self._rows:
                self._rows[operator] = (*self._rows[operator][:2], where)

    def frozen(self) -> tuple[FallbackState, ...]:
        """Returns the operators, those that ran most first."""
        with self._lock:
            rows = [
                FallbackState(operator=operator, count=count, since=since, where=where)
                for operator, (count, since, where) in self._rows.items()
            ]
        return tuple(sorted(rows, key=lambda each: -each.count))
