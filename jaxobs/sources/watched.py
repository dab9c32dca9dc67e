"""Watched values: on the slow tick, and above all at the end, asks those that have arrived and nobody has asked yet."""

from __future__ import annotations

from jaxobs.store import Store
from jaxobs.watched import Watched


class WatchedSource:
    """The source: what `jaxobs.watch` has taken in; `nonfinite` events out."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def start(self) -> None:
        """Nothing to prepare."""

    def stop(self) -> None:
        """Nothing to undo."""

    def after_fork(self) -> None:
        """In a forked child: nothing is watched yet."""

    def sample(self) -> None:
        """Asks what has arrived."""
        for event in self._store.part(Watched).look():
            self._store.record(event)


def source(store: Store) -> WatchedSource:
    """What the folder's discovery asks every source for."""
    return WatchedSource(store)
