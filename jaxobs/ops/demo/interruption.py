"""Ctrl-C and SIGTERM: they end the demo at once while nothing compiles, and after the step while something may.

JAX lets an exception out of a compile that continues in a thread of XLA, and a process that ends meanwhile dies of a
segmentation fault (seen with jaxlib 0.10.2, without jaxobs as well). So a step is never interrupted in the middle.
"""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any


class Interruption:
    """Handles both signals inside `with`; a second one ends the demo at once, whatever it does."""

    def __init__(self) -> None:
        self.number: int | None = None
        """The signal that came; None while none did."""
        self.defer = False
        """Whether a first signal is only kept, for somebody to look at `number`."""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._heard)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        first = self.number is None
        self.number = number
        if self.defer and first:
            return
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
