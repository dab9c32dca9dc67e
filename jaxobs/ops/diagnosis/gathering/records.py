"""A record of a structured log, one JSON object, in the forms of loggers and collectors."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxobs.base import json_lines
from jaxobs.ops.diagnosis.gathering.log_times import of_stamp

MESSAGES = ("message", "msg", "textPayload", "log", "event", "MESSAGE", "body", "line")
_EXCEPTIONS = ("exception", "exc_info", "exc", "exc_text", "error.stack", "stack_trace", "stacktrace", "traceback")
_STAMPS = ("timestamp", "time", "ts", "asctime", "@timestamp", "__REALTIME_TIMESTAMP", "timeUnixNano")
_INSTANCES = ("pod_name", "pod", "k8s.pod.name", "kubernetes_pod_name", "_HOSTNAME", "hostname", "logStreamName")
"""Fields that say which of several processes a line is from, the most telling first."""
_LABELS = (*_INSTANCES, "instance", "host")
"""Among labels, where a program's own fields are not."""
_PAYLOADS = ("jsonPayload", "content")
"""Fields in which a collector keeps what the program logged as fields."""


@dataclass(frozen=True, slots=True)
class Record:
    """What its fields say."""

    message: str
    exception: str
    time: float | None
    level: str
    """The name of the level, in capitals; empty if there is none."""
    by_collector: bool
    """Whether the level is what a collector makes of stdout and stderr, and no judgement of the program's."""
    rank: int | None
    instance: str
    """The pod or the host; empty if unknown."""


def record(text: str, year: int) -> Record | None:
    """What a line of JSON says; None if it is no record with a message.

    Args:
      year: of times that have none.
    """
    try:
        body = json_lines.loads(text)
    except (ValueError, json.JSONDecodeError):
        return None
    if not isinstance(body, dict):
        return None
    inner: dict[str, Any] = next((body[each] for each in _PAYLOADS if isinstance(body.get(each), dict)), {})
    fields = {**inner, **body}
    message = _one_of(fields, *MESSAGES)
    if message is None:
        return None
    rank = _one_of(fields, "process_index", "rank", "process")
    return Record(
        message=message, exception=_one_of(fields, *_EXCEPTIONS) or "",
        time=of_stamp(_one_of(fields, *_STAMPS), year),
        level=(_one_of(fields, "severity", "level", "levelname") or "").upper(), by_collector="textPayload" in fields,
        rank=int(rank) if rank is not None and re.fullmatch(r"\d{1,5}", rank) else None, instance=_instance(fields),
    )  # fmt: skip


def _instance(fields: Mapping[str, Any]) -> str:
    """The name of the pod or the host, as collectors put it beside the text."""
    resource = fields.get("resource")
    places = [resource.get(each) for each in ("labels", "attributes")] if isinstance(resource, dict) else []
    places += [fields.get(each) for each in ("kubernetes", "labels", "stream", "metadata")]
    found = [_one_of(each, *_LABELS) for each in places if isinstance(each, dict)]
    return next((each for each in (*found, _one_of(fields, *_INSTANCES)) if each), "")[:120]


def _one_of(fields: Mapping[str, Any], *names: str) -> str | None:
    """The first that is there, as text; of an object its name, or its value as OpenTelemetry writes it."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, dict):
            value = next((value[each] for each in ("name", "stringValue") if each in value), None)
        if isinstance(value, str | float) or (isinstance(value, int) and not isinstance(value, bool)):
            return str(value)
    return None
