"""What the persistent compilation cache did for this process. Changed under the store's lock."""

from __future__ import annotations

from collections import Counter

from jaxobs.facts.cache import CacheLookup, CacheState
from jaxobs.facts.compilations import Compilation


class CacheTotals:
    """Programs that were not stored, compile time saved, and the size of the cache on disk."""

    def __init__(self) -> None:
        self.size: tuple[int | None, int | None, int | None] = (None, None, None)
        """Bytes, entries, and bytes by which it grew; None where it is out of sight."""
        self._unsaved: Counter[str] = Counter()
        self._saved_seconds = 0.0

    def see_compilation(self, event: Compilation) -> None:
        """Counts a program that was compiled and not stored."""
        if event.cache == "miss" and event.uncached_because is not None:
            self._unsaved[event.uncached_because] += 1

    def see_lookup(self, event: CacheLookup) -> None:
        """Adds the compile time that a hit saved."""
        self._saved_seconds += max(0.0, event.saved_seconds or 0.0)

    def frozen(self, enabled: bool, directory: str | None) -> CacheState:
        """With how JAX is configured now."""
        size, entries, grown = self.size
        return CacheState(
            enabled=enabled,
            directory=directory,
            unsaved=dict(self._unsaved),
            saved_seconds=self._saved_seconds,
            bytes=size,
            entries=entries,
            grown_bytes=grown,
        )
