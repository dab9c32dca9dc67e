"""Floods of webhooks: a bound on what they have written, and room for the alerts that Prometheus reports itself.

Anyone who reaches the port can send webhooks of subjects that do not exist, as many as the connection takes. What is
written draws on an allowance. While that is used up, counts wait, and so do incidents that Prometheus does not report.
"""

import threading
import time
from collections.abc import Callable, Mapping

from jaxobs.ops.agent.subjects import Subject
from jaxobs.ops.diagnosis.gathering.http import NoAnswerError
from jaxobs.ops.diagnosis.gathering.prometheus_api import ask, dicts, labels_of

MOST_AT_ONCE = 8 * 2**20
"""Bytes that are written without waiting."""
PER_MINUTE = 2 * 2**20
"""Bytes that are written in a minute when those are used up."""
LOOK_EVERY = 5.0
"""Seconds between looks at what Prometheus reports."""
_TIMEOUT = 5.0
_PLACES = ("cluster", "namespace")
"""Labels that an Alertmanager may see and its Prometheus does not: they are added on the way."""


class Flood:
    """Allowance of an agent. Safe for threads."""

    def __init__(self, prometheus: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`prometheus` is the address of the one that is believed."""
        self._prometheus, self._clock = prometheus, clock
        self._left, self._at = float(MOST_AT_ONCE), clock()
        self._lock = threading.Lock()
        self._look_at = 0.0
        self._looking = threading.Lock()
        self._reported: Mapping[tuple[tuple[str, str], ...], list[Subject]] = {}
        """Subjects of the alerts that Prometheus reports, by job, process or alert."""

    def wrote(self, count: int) -> None:
        """Takes bytes that were written off the allowance. It recovers from any storm within minutes."""
        with self._lock:
            now = self._clock()
            self._left = min(MOST_AT_ONCE, self._left + (now - self._at) * PER_MINUTE / 60)
            self._left, self._at = max(-MOST_AT_ONCE, self._left - count), now

    def has_room(self) -> bool:
        """Returns whether something may be written for which nobody but a webhook speaks."""
        self.wrote(0)
        return self._left > 0

    def look(self) -> None:
        """Asks Prometheus which alerts fire, now and then; what it said before holds while it does not answer."""
        if self._clock() < self._look_at or not self._looking.acquire(blocking=False):
            return
        try:
            found: dict[tuple[tuple[str, str], ...], list[Subject]] = {}
            for alert in dicts(ask(self._prometheus, "alerts", _TIMEOUT).get("alerts")):
                if alert.get("state") == "firing":
                    subject = Subject.of(labels_of(alert.get("labels")))
                    found.setdefault(_identity(subject), []).append(subject)
            self._reported = found
        except NoAnswerError:
            pass
        finally:
            self._look_at = self._clock() + LOOK_EVERY
            self._looking.release()

    def reports(self, subject: Subject) -> bool:
        """Returns whether Prometheus reported an alert on a subject when it was asked last."""
        return any(
            all(dict(told.labels).get(name, value) == value for name, value in subject.labels)
            for told in self._reported.get(_identity(subject), ())
        )


def _identity(subject: Subject) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in subject.labels if name not in _PLACES)
