"""Operators that a lazy framework ran on the CPU, because it has no lowering of them to XLA."""

import dataclasses
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
        self._rows: dict[str, FallbackState] = {}

    def ran(self, operator: str, count: int) -> bool:
        """Counts runs of an operator; returns whether its line is still unknown."""
        with self._lock:
            operator = operator if operator in self._rows or len(self._rows) < MOST_OPERATORS else OTHER
            row = self._rows.get(operator) or FallbackState(operator=operator, count=0, since=time.time())
            self._rows[operator] = dataclasses.replace(row, count=row.count + count)
            return row.where is None and operator != OTHER

    def found(self, operator: str, where: str) -> None:
        """Keeps the line that calls an operator."""
        with self._lock:
            if operator in self._rows:
                self._rows[operator] = dataclasses.replace(self._rows[operator], where=where)

    def frozen(self) -> tuple[FallbackState, ...]:
        """Returns the operators, those that ran most first."""
        with self._lock:
            return tuple(sorted(self._rows.values(), key=lambda each: -each.count))
