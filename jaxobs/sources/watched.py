"""Watched values: on the slow tick, and above all at the end, asks those that have arrived and nobody has asked yet."""

import time

from jaxobs.sources.support.source import Source
from jaxobs.state.watched import Watched

PATIENCE_SECONDS = 1.0
"""Seconds that the end waits for a value that is being computed: it may be the one that turned NaN."""
MOST_SECONDS = 5.0
"""Seconds for all of them."""
LOOK_SECONDS = 0.005


class WatchedSource(Source):
    """The source: what `jaxobs.watch` has taken in; `nonfinite` events out."""

    def sample(self) -> None:
        """Asks what has arrived."""
        for event in self._store.part(Watched).look():
            self._store.record(event)

    def ending(self) -> None:
        """The program has ended: what it still computes arrives soon, unless a device hangs."""
        watched, last = self._store.part(Watched), time.monotonic() + MOST_SECONDS
        self.sample()
        pending, until = watched.pending, time.monotonic() + PATIENCE_SECONDS
        while pending and time.monotonic() < min(until, last):
            time.sleep(LOOK_SECONDS)
            self.sample()
            if watched.pending != pending:
                pending, until = watched.pending, time.monotonic() + PATIENCE_SECONDS

    def concluding(self) -> None:
        """Releases what has not arrived (see `Devices.concluding`)."""
        self._store.part(Watched).forget()


source = WatchedSource
