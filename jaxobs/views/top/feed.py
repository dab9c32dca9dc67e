"""State of the watched process: fetched again and again, kept when the process is gone."""

import dataclasses
import time
from collections import deque
from collections.abc import Sequence

from jaxobs.base import threads
from jaxobs.base.errors import JaxobsError
from jaxobs.facts.compilations import CacheLookup, Compilation
from jaxobs.facts.events import Event
from jaxobs.facts.snapshot import Snapshot
from jaxobs.views import client
from jaxobs.views.terminal import Connection, Overview

KEPT = 1_000
"""Recent compilations, and as many cache lookups, that the view holds: as many as a process keeps by default."""


class Feed:
    """Fetches the state of a process again and again, and keeps the last values when the process is gone."""

    def __init__(self, url: str, interval: float | None) -> None:
        self.connection = Connection(url=url, interval=interval)
        self.version = 0
        """Grows with every look."""
        self._snapshot: Snapshot | None = None
        self._taken = 0.0
        self._rates: dict[str, float] = {}
        self._compilations: deque[Compilation] = deque(maxlen=KEPT)
        self._lookups: deque[CacheLookup] = deque(maxlen=KEPT)
        self._next = self._next_lookup = 0
        self._news_until = 0.0
        self._lock = threads.Lock()
        self._stop = threads.Event()

    def look(self, *, first: bool = False) -> None:
        """Fetches once; the first failure is raised, a later one is kept for the view."""
        url = self.connection.url
        try:
            snapshot = client.fetch_snapshot(url)
            again = self._snapshot is not None and _other_process(self._snapshot, snapshot)
            page = client.fetch_events(url, since=0 if again else self._next, kind="compilation")
            lookups = self._fetch_lookups(snapshot, again)
        except JaxobsError as error:
            if first:
                raise
            with self._lock:
                since = self.connection.gone_since or time.time()
                self.connection = dataclasses.replace(
                    self.connection, gone_since=since, error=getattr(error, "brief", str(error))
                )
                self.version += 1
            return
        with self._lock:
            self._take(snapshot, page, lookups, again)

    def _fetch_lookups(self, snapshot: Snapshot, again: bool) -> Sequence[Event]:
        """Fetches lookups of the persistent cache, after the compilations: each lookup is reported before its own."""
        if not snapshot.cache.enabled:
            return ()
        since = 0 if again else self._next_lookup
        page = client.fetch_events(self.connection.url, since=since, kind="cache_lookup")
        self._next_lookup = page.next
        return page.events

    def _take(self, snapshot: Snapshot, page: client.EventPage, lookups: Sequence[Event], again: bool) -> None:
        before, taken = self._snapshot, time.monotonic()
        news = self.connection.news if taken < self._news_until else ""
        if again:
            news = f"The process has restarted: pid {snapshot.process.pid}."
            self._news_until = taken + 15
            self._compilations.clear()
            self._lookups.clear()
            before = None
        self._rates = _rates(before, snapshot)
        self._compilations.extend(each for each in page.events if isinstance(each, Compilation))
        self._lookups.extend(each for each in lookups if isinstance(each, CacheLookup))
        self._snapshot, self._taken, self._next = snapshot, taken, page.next
        self.connection = dataclasses.replace(self.connection, gone_since=None, error="", news=news)
        self.version += 1

    def view(self) -> Overview:
        """Returns the overview to show now."""
        with self._lock:
            assert self._snapshot is not None, "look() comes first"
            gone = self.connection.gone_since is not None
            return Overview(
                snapshot=self._snapshot,
                connection=self.connection,
                compilations=tuple(self._compilations),
                lookups=tuple(self._lookups),
                rates={} if gone else dict(self._rates),
                age=0.0 if gone else time.monotonic() - self._taken,
            )

    def start(self, interval: float) -> None:
        """Looks every `interval` seconds in a thread of its own, so that a slow answer never delays a key."""

        def loop() -> None:
            while not self._stop.wait(interval):
                self.look()

        threads.Thread(target=loop, name="jaxobs-top").start()

    def stop(self) -> None:
        """Looks no more."""
        self._stop.set()


def _other_process(before: Snapshot, now: Snapshot) -> bool:
    return (before.process.pid, before.process.started, before.process.hostname) != (
        now.process.pid, now.process.started, now.process.hostname,
    )  # fmt: skip


def _rates(before: Snapshot | None, now: Snapshot) -> dict[str, float]:
    """Calls a second of each function between two snapshots of one process."""
    if before is None or now.time <= before.time:
        return {}
    earlier = {each.name: each.calls for each in before.functions}
    return {
        each.name: max(each.calls - (earlier.get(each.name) or 0), 0) / (now.time - before.time)
        for each in now.functions
        if each.calls is not None
    }
