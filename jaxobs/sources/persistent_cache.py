"""The size of the persistent cache on disk: entries and bytes, looked at bit by bit on the slow tick.

A directory may hold tens of thousands of entries, and lie on a file system of the network. So each tick looks at it for
a few milliseconds, and continues where it stopped; a figure is known when a round is complete, and a directory that did
not change since the last round is not looked through again. A directory in no local file system is out of sight.
"""

import os
import time
from collections.abc import Iterator

from jaxobs import internals
from jaxobs.base.guard import guard
from jaxobs.internals import cache_state
from jaxobs.sources.support.source import Source

SLICE = 0.005
"""Seconds that one tick may spend."""
MOST_FILES = 200_000
"""Entries above which no figure is reported."""
SETTLING = 2.0
"""Seconds after a change in which an entry may still be written, and two changes may bear the same time."""


class PersistentCache(Source):
    """The source: samples the directory that JAX uses now."""

    def _begin(self, directory: str | None = None) -> None:
        self._directory = directory
        self._round: Iterator[tuple[int, int] | None] | None = None
        self._seen: tuple[int, float] | None = None
        """Time of the directory's latest change and of our clock, when the last round began."""
        self._first: int | None = None

    def stop(self) -> None:
        """Ends a round that is under way."""
        self._round = None

    @guard("persistent_cache.sample")
    def sample(self) -> None:
        """Keeps looking for a few milliseconds."""
        directory = cache_state.local(internals.persistent_cache()[1])
        if directory != self._directory:
            self._begin(directory)
            self._store.set_cache_size(None, None, None)
        if directory is None:
            return
        try:
            self._go_on(directory)
        except OSError:  # gone, not made yet, or not ours to read
            self._round = self._seen = None
            self._store.set_cache_size(None, None, None)

    def _go_on(self, directory: str) -> None:
        if self._round is None:
            changed = os.stat(directory).st_mtime_ns
            now = time.time()
            if self._seen is not None and changed == self._seen[0] and self._seen[1] - changed / 1e9 > SETTLING:
                return
            self._seen = changed, now
            self._round = _sizes(directory)
        until = time.perf_counter() + SLICE
        for found in self._round:
            if found is not None:
                self._tell(*found)
                break
            if time.perf_counter() > until:
                return
        self._round = None

    def _tell(self, size: int, entries: int) -> None:
        if entries < 0:
            self._store.set_cache_size(None, None, None)
            self._store.note(f"The persistent cache has more than {MOST_FILES:,} files; its size is not measured.")
            return
        if self._first is None:
            self._first = size
        self._store.set_cache_size(size, entries, size - self._first)


def _sizes(directory: str) -> Iterator[tuple[int, int] | None]:
    """None after each few files, at the end bytes and number of the entries; -1 of them where there are too many."""
    size = entries = 0
    with os.scandir(directory) as files:
        for number, file in enumerate(files):
            if number >= MOST_FILES:
                yield 0, -1
                return
            if file.name.endswith(cache_state.ENTRY_SUFFIX):
                try:
                    size += file.stat().st_size
                except FileNotFoundError:  # evicted meanwhile
                    continue
                entries += 1
            if number % 64 == 63:
                yield None
    yield size, entries


source = PersistentCache
