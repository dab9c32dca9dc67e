"""Host transfers by the line of the program that makes them: how many, how large, and how long they held it up.

Off unless the setting `transfers` is on. What is seen, and what is not, is reported by `jaxobs.internals.transfers`.
"""

import dataclasses
import functools
import threading
import time
from dataclasses import dataclass
from types import FrameType
from typing import Any

from jaxobs.base import threads
from jaxobs.facts.compilations import OTHER
from jaxobs.facts.transfers import FallbackState, Transfer, TransferState
from jaxobs.internals.source_files import is_jax, is_own, is_plumbing
from jaxobs.internals.transfers import Moved
from jaxobs.state.call_stats import label
from jaxobs.state.wall import Wall

MOST_SITES = 50
"""Pairs of line and direction with figures of their own; what comes later shares `<other>`."""
MOST_OPERATORS = 50
"""Operators with figures of their own; what comes later shares `<other>`."""
UNKNOWN = "<unknown>"
"""The site of what a library moves on a thread of its own."""
CHARGED = frozenset(("init", "step", "eval", "idle", "unattributed"))
"""Categories of the wall time that a transfer is taken out of. What a checkpoint reads is the checkpoint's time."""
_TOLD_AGAIN = 10
"""A site is reported again when it has moved so many times as often as when it was reported last."""
_WRAPPER = "<importlib._bootstrap>"


@dataclass(slots=True)
class _Site:
    """Transfers of one line in one direction, changed under the lock."""

    site: str
    direction: str
    since: float
    count: int = 0
    bytes: int = 0
    seconds: float = 0.0
    waits: int = 0
    wait_seconds: float = 0.0
    shape: tuple[int, ...] = ()
    dtype: str = ""
    told: int = 0

    def figures(self) -> dict[str, Any]:
        """Returns what an event and a state have in common."""
        return {name: getattr(self, name) for name in self.__slots__ if name not in ("since", "told")}


class Transfers:
    """All sites of one process; see `Store.part`."""

    def __init__(self) -> None:
        # Reentrant: a signal handler of the program may read an array while this thread is in here.
        self._lock = threads.RLock()
        self._sites: dict[tuple[str, str], _Site] = {}
        self.dropped = 0
        """Transfers that were counted as of `<other>` since somebody asked."""

    def take(self, moved: Moved, frame: FrameType, wall: Wall) -> None:
        """Counts what was moved in that frame, unless jaxobs itself did."""
        site = site_of(frame)
        if site is None:
            return
        if not moved.waited and moved.seconds and wall.thread == threading.get_ident() and wall.category in CHARGED:
            wall.move("transfer", moved.seconds)
        with self._lock:
            row = self._row(site, moved.direction)
            row.count += 1
            row.bytes += moved.bytes
            if moved.waited:
                row.waits += 1
                row.wait_seconds += moved.seconds
            else:
                row.seconds += moved.seconds
            row.shape, row.dtype = moved.shape, moved.dtype

    def add(self, direction: str, count: int, size: int) -> None:
        """Counts arrays that were moved, and nobody saw at which line."""
        with self._lock:
            row = self._row(UNKNOWN, direction)
            row.count, row.bytes = row.count + count, row.bytes + size

    def _row(self, site: str, direction: str) -> _Site:
        found = self._sites.get((site, direction))
        if found is None:
            if len(self._sites) >= MOST_SITES:
                self.dropped += 1
                site = OTHER
            found = self._sites.setdefault((site, direction), _Site(label(site), direction, time.time()))
        return found

    def frozen(self) -> tuple[TransferState, ...]:
        """Every site, the most bytes first."""
        with self._lock:
            found = [TransferState(since=each.since, **each.figures()) for each in self._sites.values()]
        return tuple(sorted(found, key=lambda each: -each.bytes))

    def to_tell(self, *, all_of_them: bool = False) -> list[Transfer]:
        """Events that are due: of sites that are new or have grown tenfold; at the end of all that have grown."""
        found = []
        with self._lock:
            for site in self._sites.values():
                if site.count >= max(1, _TOLD_AGAIN * site.told) or (all_of_them and site.count > site.told):
                    site.told = site.count
                    found.append(Transfer(time=time.time(), **site.figures()))
        return found


def site_of(frame: FrameType) -> str | None:
    """`file:line` of the innermost frame of the user's code; None where jaxobs itself reads or puts an array."""
    innermost = True
    each: FrameType | None = frame
    while each is not None:
        kind = _kind(each.f_code.co_filename)
        if kind == "user":
            return f"{each.f_code.co_filename}:{each.f_lineno}"
        if kind == "own" and innermost:
            return None
        innermost = innermost and kind in ("jax", "wrapper")
        each = each.f_back
    return UNKNOWN


@functools.lru_cache(maxsize=1024)
def _kind(filename: str) -> str:
    if is_jax(filename) or (is_plumbing(filename) and "/numpy/" in filename.replace("\\", "/")):
        return "jax"
    if is_own(filename):
        return "wrapper" if _WRAPPER in filename else "own"
    return "library" if is_plumbing(filename) else "user"


class Fallbacks:
    """Operators that a lazy framework ran on the CPU, because it has no lowering of them to XLA; see `Store.part`."""

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
