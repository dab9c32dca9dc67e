"""Activity of the host during a trace, moment by moment: from the account of its time and Python's garbage collector.

A trace has what JAX and XLA do, but not what the program waits for. This record is written next to it, so that
the devices' idle time has a reason.
"""

import contextlib
import gc
import json
import os
import time
from collections import deque
from collections.abc import Mapping
from threading import get_ident
from typing import Any

from jaxobs.base import private_files
from jaxobs.profiles.host_record import FILE
from jaxobs.state.wall import Wall

MOST_SPANS = 20_000
GARBAGE = "garbage_collection"


class HostRecord:
    """Records from when it is made until `stop`. One at a time for one account."""

    def __init__(self, wall: Wall) -> None:
        self._wall = wall
        self._spans: deque[tuple[str, float, float]] = deque(maxlen=MOST_SPANS)
        self._offset = time.time() - time.perf_counter()
        self._collecting: dict[int, float] = {}
        self._goes_on = True
        wall.record_into(self._spans)
        gc.callbacks.append(self._collected)

    def stop(self) -> None:
        """Records nothing more. Once is enough; twice is not an error."""
        if not self._goes_on:
            return
        self._goes_on = False
        with contextlib.suppress(ValueError):  # the program has emptied the list
            gc.callbacks.remove(self._collected)
        self._wall.record_into(None)
        now = time.perf_counter()
        # A step that goes on has not ended: it is none of the trace's.
        self._spans.extend((name, began, now) for name, began in self._wall.open_scopes() if name != "step")

    def _collected(self, phase: str, _: Mapping[str, int]) -> None:
        # On any thread, at any moment, in the middle of anything: only what cannot fail.
        if phase == "start":
            self._collecting[get_ident()] = time.perf_counter()
        else:
            began = self._collecting.pop(get_ident(), None)
            if began is not None and get_ident() == self._wall.thread:
                self._spans.append((GARBAGE, began, time.perf_counter()))

    def as_json(self) -> dict[str, Any]:
        """Spans by category: when each began and ended, in nanoseconds since the epoch."""
        spans: dict[str, list[tuple[int, int]]] = {}
        for category, began, ended in list(self._spans):
            spans.setdefault(category, []).append((self._epoch(began), self._epoch(ended)))
        return {"spans": spans}

    def write(self, folder: str) -> None:
        """Writes it next to a trace; raises `OSError` if it cannot be written."""
        private_files.write_whole(os.path.join(folder, FILE), [json.dumps(self.as_json()).encode()])

    def _epoch(self, moment: float) -> int:
        return round((moment + self._offset) * 1e9)
