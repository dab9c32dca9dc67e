"""Asks a Prometheus within bounds: on time, series, points and bytes."""

from __future__ import annotations

import hashlib
import json
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxobs.ops.diagnosis.gathering.http import NoAnswerError
from jaxobs.ops.diagnosis.gathering.prometheus import ask, dicts, labels_of, points_of

MOST_SERIES = 500
POINTS = 60
"""Of one series."""
MOST_TARGETS = 20_000


@dataclass(frozen=True, slots=True)
class Line:
    """One series of an answer."""

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
    """One process that Prometheus scrapes."""

    url: str
    """Where it is scraped."""
    labels: Mapping[str, str]
    is_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The time that is looked at."""

    end: float
    seconds: float
    step: float = field(default=0.0)

    @property
    def start(self) -> float:
        """Seconds since the epoch."""
        return self.end - self.seconds

    @property
    def apart(self) -> float:
        """Seconds between two points."""
        return self.step or max(self.seconds / POINTS, 1.0)


def range_of(prometheus: str, query: str, window: Window, timeout: float) -> Answer:
    """What a query gave over a window. Never raises: a problem is part of the answer."""
    began = time.monotonic()
    asked = {
        "query": query,
        "start": f"{window.start:.3f}",
        "end": f"{window.end:.3f}",
        "step": f"{window.apart:g}",
        "timeout": f"{timeout:g}s",
    }
    try:
        data = ask(f"{prometheus.rstrip('/')}/api/v1/query_range?{urllib.parse.urlencode(asked)}", timeout)
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
    """What a Prometheus scrapes.

    Raises:
      NoAnswerError: it does not say.
    """
    data = ask(f"{prometheus.rstrip('/')}/api/v1/targets?state=active", timeout)
    return [
        Target(each["scrapeUrl"], labels_of(each.get("labels")), each.get("health") == "up")
        for each in dicts(data.get("activeTargets"))[:MOST_TARGETS]
        if isinstance(each.get("scrapeUrl"), str)
    ]
