"""Asks a Prometheus, within bounds on time, series, points and bytes. Everybody who asks one asks it here."""

import hashlib
import json
import math
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxobs.base import json_lines
from jaxobs.ops.diagnosis.gathering.http import Answers, Asked, NoAnswerError

MOST_SERIES = 500
"""Series of one answer."""
POINTS = 60
"""Points of one series."""
MOST_TARGETS = 20_000


class NotPrometheusError(NoAnswerError):
    """Something answers, but not as a Prometheus does."""


@dataclass(frozen=True, slots=True)
class Line:
    """A series of an answer."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]

    @property
    def process(self) -> str:
        """The instance, or all labels."""
        return self.labels.get("instance") or ", ".join(
            f"{name}={value}" for name, value in sorted(self.labels.items())
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, or why nothing did."""

    lines: tuple[Line, ...] = ()
    problem: str | None = None
    seconds: float = 0.0
    sha256: str = ""
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Target:
    """A process that Prometheus scrapes."""

    url: str
    """Where it is scraped."""
    labels: Mapping[str, str]
    is_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The time that is looked at."""

    end: float
    """Seconds since the epoch."""
    seconds: float
    step: float = 0.0
    """0 for as many points as `POINTS`."""

    @property
    def start(self) -> float:
        """Seconds since the epoch."""
        return self.end - self.seconds

    @property
    def apart(self) -> float:
        """Seconds between two points."""
        return self.step or max(self.seconds / POINTS, 1.0)

    def asking(self, query: str) -> dict[str, str]:
        """Returns the parameters of `query_range` for an expression."""
        return {"query": query, "start": f"{self.start:.3f}", "end": f"{self.end:.3f}", "step": f"{self.apart:g}"}


def ask(
    base: str, path: str, timeout: float, parameters: Mapping[str, str] | None = None,
    *, answers: Answers | None = None, until: float = math.inf,
) -> Mapping[str, Any]:  # fmt: skip
    """Returns the data of an answer of Prometheus' API.

    Args:
      path: below `/api/v1/`.
      timeout: seconds for the answer.
      answers: where it comes from; asked now if None.
      until: when to ask no more, by `time.monotonic`.

    Raises:
      NoAnswerError: there is none in time (NotPrometheusError: what answers is no Prometheus).
    """
    query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
    try:
        body = json_lines.loads(
            (answers or Asked()).of_server(f"{base.rstrip('/')}/api/v1/{path}{query}", timeout, until)
        )
    except ValueError:
        raise NotPrometheusError("the answer is not JSON") from None
    if not isinstance(body, dict) or body.get("status") != "success" or not isinstance(body.get("data"), dict):
        raise NotPrometheusError("what answers is not a Prometheus")
    data: Mapping[str, Any] = body["data"]
    return data


def range_of(prometheus: str, query: str, window: Window, timeout: float) -> Answer:
    """Returns what a query gave over a window. Never raises: a problem is part of the answer."""
    began = time.monotonic()
    try:
        data = ask(prometheus, "query_range", timeout, {**window.asking(query), "timeout": f"{timeout:g}s"})
    except NoAnswerError as error:
        return Answer(problem=str(error), seconds=time.monotonic() - began)
    result = dicts(data.get("result"))
    lines = [Line(labels_of(each.get("metric")), tuple(points_of(each.get("values")))) for each in result[:MOST_SERIES]]
    lines = sorted((each for each in lines if each.points), key=lambda each: sorted(each.labels.items()))
    whole = json.dumps(data, sort_keys=True).encode()
    return Answer(
        tuple(lines), None, time.monotonic() - began, hashlib.sha256(whole).hexdigest(),
        max(0, len(result) - MOST_SERIES),
    )  # fmt: skip


def targets(prometheus: str, timeout: float) -> list[Target]:
    """Returns what a Prometheus scrapes.

    Raises:
      NoAnswerError: it does not say.
    """
    data = ask(prometheus, "targets", timeout, {"state": "active"})
    return [
        Target(each["scrapeUrl"], labels_of(each.get("labels")), each.get("health") == "up")
        for each in dicts(data.get("activeTargets"))[:MOST_TARGETS]
        if isinstance(each.get("scrapeUrl"), str)
    ]


def dicts(value: Any) -> list[dict[str, Any]]:
    """Returns the objects of a list from outside."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def labels_of(value: Any) -> dict[str, str]:
    """Returns labels from outside, bounded in number and length."""
    if not isinstance(value, dict):
        return {}
    return {str(key)[:100]: str(each)[:300] for key, each in list(value.items())[:50]}


def points_of(values: Any) -> list[tuple[float, float]]:
    """Returns the finite samples of a series from outside: time and value."""
    found = []
    for sample in values if isinstance(values, list) else ():
        try:
            at, value = sample
            point = float(at), float(value)
        except (TypeError, ValueError, OverflowError):
            continue
        if all(map(math.isfinite, point)):
            found.append(point)
    return found[: 4 * POINTS]
