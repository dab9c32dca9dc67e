"""Seconds by category as counters show them: none ever goes down."""

from __future__ import annotations

import threading

from jaxobs.facts.wall import TIME_CATEGORIES


class Counters:
    """What was shown last."""

    def __init__(self) -> None:
        # Reentrant: a signal handler of the program may come in here while this thread is.
        self._lock = threading.RLock()
        self._shown = dict.fromkeys(TIME_CATEGORIES, 0.0)

    def counted(self, seconds: dict[str, float]) -> dict[str, float]:
        """See `Wall.counted`."""
        with self._lock:
            before = self._shown
            # It will never catch up: what was shown as not known stays so, at the expense of what it was.
            kept = max(0.0, before["unattributed"] - seconds["unattributed"])
            wanted_of = seconds | {"init": max(0.0, seconds["init"] - kept)}
            due = {name: max(0.0, value - before[name]) for name, value in wanted_of.items()}
            passed, wanted = sum(seconds.values()) - sum(before.values()), sum(due.values())
            if passed > 0.0 and wanted > 0.0:
                share = min(1.0, passed / wanted)
                shown = {name: value + share * due[name] for name, value in before.items()}
                if self._shown is before:
                    self._shown = shown
            return self._shown
