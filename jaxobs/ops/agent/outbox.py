"""Messages that wait for one destination: those of one cause become one, and there are so many in a minute at most.

What is beyond is summed up in one message when there is room, the worst incident first. Incidents of which Prometheus
reports no alert have half of the room, so that a flood of forged ones keeps no true one out.
"""

import collections
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from jaxobs.ops.agent import sending
from jaxobs.ops.agent.grouping import CommonCause
from jaxobs.ops.agent.incidents import rank
from jaxobs.ops.agent.payloads import CLOSED, REPORTED, Message
from jaxobs.ops.agent.report import Delivery, Report
from jaxobs.ops.agent.sending import Destination, Destinations

MOST_WAITING = 1000
MOST_CLOSED = 100
"""Incidents of a group that a message about its end names."""
TOGETHER = 600.0
"""Seconds after a message in which incidents of its cause join it."""
AGAIN = 60.0
"""Seconds from a message to the next one of its cause."""
_VERDICTS = ("cause", "likely", "inconclusive", "no_fault")


@dataclass(slots=True)
class _Group:
    """Incidents that the destination knows by one key."""

    cause: CommonCause
    sent_at: float
    open: set[str] = field(default_factory=set)
    closed: list[Report] = field(default_factory=list)


class Outbox:
    """Messages for one destination. Safe for threads."""

    def __init__(self, to: Destination, given: Destinations, done: Callable[[Message, Delivery], None],
                 clock: Callable[[], float] = time.monotonic) -> None:  # fmt: skip
        """`done` is called with each message and what became of it."""
        self.to, self._given, self._done, self._clock = to, given, done, clock
        self._changed = threading.Condition()
        self._is_stopping = False
        self._waiting: dict[str, tuple[float, Report]] = {}
        """Reports by id, and the times at which they may go."""
        self._groups: dict[str, _Group] = {}
        self._keys: dict[str, str] = {}
        """Keys of groups by id of the incident."""
        self._sent: collections.deque[float] = collections.deque()

    def restore(self, reports: Iterable[Report]) -> None:
        """Takes up the groups of open incidents from what their reports say was sent; what was not sent, waits."""
        for report in reports:
            told = [each for each in report.deliveries if (each.destination, each.about) == (self.to.name, REPORTED)]
            if told:
                self._join(told[-1].key or report.id, [report], self._clock() - TOGETHER)
            elif (report.verdict, report.severity) != ("no_fault", "info"):
                self.put(report, REPORTED)

    def put(self, report: Report, about: str) -> bool:
        """Takes a report; returns whether there is room for it."""
        now = self._clock()
        with self._changed:
            if about == CLOSED:
                self._waiting.pop(report.id, None)
                group = self._groups.get(self._keys.pop(report.id, ""))
                if group is not None:
                    group.open.discard(report.id)
                    group.closed = [*group.closed, report][-MOST_CLOSED:]
                self._changed.notify_all()
                return True
            if len(self._waiting) >= MOST_WAITING and report.id not in self._waiting:
                return False
            like = self._groups.get(self._key(report, CommonCause.of(report), now))
            quiet_until = like.sent_at + AGAIN if like is not None and report.id not in like.open else 0.0
            self._waiting[report.id] = max(now + self._given.gather, quiet_until), report
            self._changed.notify_all()
        return True

    def run(self) -> None:
        """Sends until it is stopped."""
        while not self._is_stopping:
            with self._changed:
                message = self.take()
                if message is None:
                    self._changed.wait(0.5)
                    continue
            self._done(message, sending.send(message, self.to, pause=self._pause))

    def stop(self) -> None:
        """Ends `run`; the next agent sends what waits."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()

    def take(self) -> Message | None:
        """Returns the next message that may go now; it counts as sent."""
        now = self._clock()
        while self._sent and now - self._sent[0] >= 60.0:
            self._sent.popleft()
        found = self._opening(now) or self._closing()
        if found is not None:
            self._sent.append(now)
        return found

    def _room(self, *, is_vouched: bool) -> int:
        most = self._given.per_minute
        return (most if is_vouched else max(1, most // 2)) - len(self._sent)

    def _opening(self, now: float) -> Message | None:
        due = sorted((report for at, report in self._waiting.values() if at <= now), key=_order)
        room = self._room(is_vouched=not _is_alone(due[0])) if due else 0
        if room < 1:
            return None
        cause = CommonCause.of(due[0])
        chosen = [due[0]]
        chosen += sorted((each for _, each in self._waiting.values()
                          if each.id != due[0].id and CommonCause.of(each).is_that_of(cause)), key=_order)  # fmt: skip
        is_mixed = room == 1 and any(each not in chosen for each in due)
        if is_mixed:
            chosen += [each for each in due if each not in chosen]
        key = self._key(due[0], cause, now)
        self._join(key, chosen, now)
        for each in chosen:
            del self._waiting[each.id]
        return Message(key=key, about=REPORTED, reports=tuple(chosen), is_mixed=is_mixed, url=self._given.url)

    def _closing(self) -> Message | None:
        if self._room(is_vouched=False) < 1:
            return None
        for key, group in self._groups.items():
            if group.closed and not group.open:
                del self._groups[key]
                is_mixed = any(not CommonCause.of(each).is_that_of(group.cause) for each in group.closed)
                ended = tuple(sorted(group.closed, key=_order))
                return Message(key=key, about=CLOSED, reports=ended, is_mixed=is_mixed, url=self._given.url)
        return None

    def _key(self, report: Report, cause: CommonCause, now: float) -> str:
        """Returns the key by which the destination knows an incident, or one of its cause; else its own id."""
        known = self._keys.get(report.id)
        alike = (key for key, group in self._groups.items()
                 if now - group.sent_at < TOGETHER and group.cause.is_that_of(cause))  # fmt: skip
        return known or next(alike, report.id)

    def _join(self, key: str, reports: Iterable[Report], now: float) -> None:
        for report in reports:
            own = self._keys.setdefault(report.id, key)
            group = self._groups.setdefault(own, _Group(CommonCause.of(report), now))
            group.open.add(report.id)
            group.sent_at = now

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopping, seconds)


def _is_alone(report: Report) -> bool:
    """Returns whether nobody but a webhook speaks for an incident."""
    return bool(report.alerts) and all(each.confirmed is False for each in report.alerts)


def _order(report: Report) -> tuple[bool, int, int, str]:
    return _is_alone(report), rank(report.severity), _VERDICTS.index(report.verdict), report.opened_at
