"""Events, and their form in the event log and in the API."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened, at a time, in a process."""

    kind: ClassVar[str] = ""

    time: float
    """Time of the event, in seconds since the epoch."""
    process_index: int = 0
    """JAX's index of the process; 0 where there is one."""
    pid: int = 0
    """Operating system's number of the process."""
    sequence: int = 0
    """Number of the event in this process, from 1, without gaps."""


def timestamp(seconds: float) -> str:
    """RFC 3339 in UTC, to the microsecond: `2026-01-31T09:15:00.250000Z`; what no calendar has becomes its end."""
    try:
        moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    except (OverflowError, ValueError, OSError):
        moment = datetime.datetime.max if seconds > 0 else datetime.datetime(1970, 1, 1)
    return f"{moment.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def as_event(event: Event) -> dict[str, Any]:
    """Returns the event as one object of the event log and of `/api/v1/events`: `time` and `event` come first."""
    body: dict[str, Any] = {"time": timestamp(event.time), "event": event.kind}
    kind: Any = type(event)
    for name in _fields(kind):
        if name != "time":
            body[name] = plain(getattr(event, name))
    return body


def plain(value: Any) -> Any:
    """Facts as what JSON knows: dictionaries, lists, texts, numbers."""
    kind = type(value)
    if value is None or kind in (str, int, bool):
        return value
    if kind is float or isinstance(value, float):
        return value if math.isfinite(value) else None
    if kind is tuple or isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if kind is dict or isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: plain(getattr(value, name)) for name in _fields(type(value))}
    return value


@functools.cache
def _fields(kind: Any) -> tuple[str, ...]:
    """Returns the names of a fact's fields."""
    return tuple(each.name for each in dataclasses.fields(kind))
