"""The latest events of each kind: so many, and fewer where they list very many changes.

Each kind has a ring of its own, so that frequent events do not push out rare ones. Changed under the store's lock.
"""

import dataclasses
from collections import deque

from jaxobs.facts.compilations import Compilation
from jaxobs.facts.events import Event
from jaxobs.facts.memory import DeviceMemory
from jaxobs.facts.process import Exit
from jaxobs.facts.steps import Step

MOST_CHANGES = 12_000
"""Changes that the kept events of one kind may list together."""


class EventRings:
    """A ring for each kind of event."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._rings: dict[str, _Ring] = {}

    def append(self, event: Event) -> None:
        """Keeps an event, without what only the event log shows."""
        if event.kind not in self._rings:
            self._rings[event.kind] = _Ring(self._most)
        self._rings[event.kind].append(_kept(event))

    def resize(self, most: int) -> None:
        """Keeps at most so many events of each kind from now on."""
        self._most = most
        for ring in self._rings.values():
            ring.resize(most)

    def relabel(self, process_index: int) -> None:
        """All kept events were of the process with this index."""
        for ring in self._rings.values():
            known = [dataclasses.replace(event, process_index=process_index) for event in ring.events]
            ring.events = deque(known, maxlen=ring.events.maxlen)

    def after(self, since: int, kind: str | None) -> tuple[list[Event], int]:
        """Events with a number above `since`, oldest first, and how many of their kind are no longer kept."""
        rings = list(self._rings.values()) if kind is None else [r for k, r in self._rings.items() if k == kind]
        found = [event for ring in rings for event in ring.events if event.sequence > since]
        lost = sum(ring.lost for ring in rings if ring.newest_lost > since)
        found.sort(key=lambda event: event.sequence)
        return found, lost

    def count(self, kind: str) -> int:
        """How many of a kind were appended."""
        ring = self._rings.get(kind)
        return 0 if ring is None else ring.lost + len(ring.events)


class _Ring:
    __slots__ = ("_changes", "events", "lost", "newest_lost")

    def __init__(self, most: int) -> None:
        self.events: deque[Event] = deque(maxlen=most)
        self.lost = 0
        self.newest_lost = 0
        self._changes = 0

    def append(self, event: Event) -> None:
        if len(self.events) == self.events.maxlen:
            self._lose()
        self.events.append(event)
        self._changes += _changes(event)
        while self._changes > MOST_CHANGES and len(self.events) > 1:
            self._lose()

    def _lose(self) -> None:
        event = self.events.popleft()
        self._changes -= _changes(event)
        self.lost += 1
        self.newest_lost = event.sequence

    def resize(self, most: int) -> None:
        kept, self.events, self._changes = self.events, deque(maxlen=most), 0
        for event in kept:
            self.append(event)


def _kept(event: Event) -> Event:
    """The event without what is for the event log only, and would take a ring's memory."""
    if isinstance(event, Compilation) and event.signature is not None:
        return dataclasses.replace(event, signature=None)
    if isinstance(event, DeviceMemory) and event.groups:
        return dataclasses.replace(event, groups=())
    if isinstance(event, Step | Exit) and event.standing is not None:
        return dataclasses.replace(event, standing=None)
    return event


def _changes(event: Event) -> int:
    return len(event.changes) if isinstance(event, Compilation) else 0
