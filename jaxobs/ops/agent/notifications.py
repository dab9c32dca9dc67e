"""Alertmanager's webhook (version 4). Every field may be missing, wrong, huge or made to do harm."""

import datetime
import hashlib
import itertools
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxobs.base import json_lines
from jaxobs.ops.agent.subjects import Subject
from jaxobs.ops.diagnosis.evidence import clean

MOST_ALERTS = 200
"""Alerts that are read of one notification."""
MOST_LABELS = 50
MOST_NAME = 100
MOST_VALUE = 300
MOST_TEXT = 4096
"""Characters of an alert's labels together, and of its annotations."""
FIRING, RESOLVED = "firing", "resolved"
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_FRACTION = re.compile(r"(\.\d{6})\d+")


class RefusedError(Exception):
    """A body is not a notification; `reason` is one word for a metric, the message is for a person."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """Alert of a notification, bounded and without control characters."""

    status: str
    labels: Mapping[str, str]
    summary: str
    starts_at: float | None
    """Seconds since the epoch; None if it does not say."""
    ends_at: float | None
    """None while it fires."""
    fingerprint: str
    """Hash of the labels. It is computed here: what the body says of itself is not relied upon."""

    @property
    def name(self) -> str:
        """Name of the alert's rule."""
        return self.labels.get("alertname", "")

    @property
    def subject(self) -> Subject:
        """Subject of the alert."""
        return Subject.of(self.labels)


@dataclass(frozen=True, slots=True)
class Notification:
    """Alerts that were posted, and how many of them were left out."""

    alerts: tuple[Alert, ...]
    left_out: int = 0


def parse(body: bytes) -> Notification:
    """Returns the alerts of a webhook's body.

    Raises:
      RefusedError: it is not JSON, not a notification, or of another version.
    """
    try:
        given = json_lines.loads(body)
    except ValueError as error:
        raise RefusedError("not_json", f"The body is not JSON: {error}.") from None
    if not isinstance(given, dict):
        raise RefusedError("not_a_notification", "The body is not an object, as Alertmanager's webhook sends it.")
    if given.get("version") not in ("4", 4, None):
        raise RefusedError("version", f"The body has version {given['version']!r:.40}; this agent knows version '4'.")
    listed = given.get("alerts")
    if not isinstance(listed, list):
        raise RefusedError("not_a_notification", "The body has no list `alerts`.")
    common = _texts(given.get("commonLabels"))
    notes = _texts(given.get("commonAnnotations"))
    alerts = [_alert(each, common, notes, given.get("status")) for each in listed[:MOST_ALERTS]]
    return Notification(tuple(each for each in alerts if each is not None), max(0, len(listed) - MOST_ALERTS))


def _alert(given: Any, common: Mapping[str, str], notes: Mapping[str, str], whole: Any) -> Alert | None:
    if not isinstance(given, dict):
        return None
    labels = {**common, **_texts(given.get("labels"))}
    status = given.get("status", whole)
    ends = _moment(given.get("endsAt"))
    told = {**notes, **_texts(given.get("annotations"))}
    identity = json.dumps(sorted(labels.items())).encode()
    return Alert(
        status=RESOLVED if status == RESOLVED else FIRING,
        labels=labels,
        summary=told.get("summary") or told.get("description", ""),
        starts_at=_moment(given.get("startsAt")),
        ends_at=ends if status == RESOLVED else None,
        fingerprint=hashlib.sha256(identity).hexdigest()[:16],
    )


def _texts(given: Any) -> dict[str, str]:
    """Labels or annotations: names as Prometheus allows them, values as one bounded line."""
    if not isinstance(given, dict):
        return {}
    found = [(name, value) for name, value in given.items() if isinstance(value, str) and _LABEL.fullmatch(name)]
    kept = {name: clean(value, MOST_VALUE) for name, value in found[:MOST_LABELS] if len(name) <= MOST_NAME}
    sizes = itertools.accumulate(len(name) + len(value) for name, value in kept.items())
    return {name: value for (name, value), size in zip(kept.items(), sizes, strict=True) if size <= MOST_TEXT}


def _moment(given: Any) -> float | None:
    """Returns seconds since the epoch; None for nonsense, and for Go's zero time, which says that there is none."""
    if not isinstance(given, str) or len(given) > 64:
        return None
    try:
        found = datetime.datetime.fromisoformat(_FRACTION.sub(r"\1", given).replace("Z", "+00:00"))
        moment = found.timestamp() if found.tzinfo else math.nan
    except (ValueError, OverflowError, OSError):
        return None
    return moment if 0 < moment < 4e9 else None
