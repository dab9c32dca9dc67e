"""A server that answers as Prometheus does, with what a test puts into it, and notes what it was asked."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from helpers import answering


@dataclass
class Stub:
    """Answers by path; a test may change them at any time."""

    url: str = ""
    alerts: list[dict[str, str]] = field(default_factory=list)
    """Labels of those that fire."""
    series: dict[str, list[tuple[dict[str, str], float]]] = field(default_factory=dict)
    """By metric: labels and what a series grows by in each minute, or its value if its name is not a counter's."""
    targets: list[tuple[str, dict[str, str], str]] = field(default_factory=list)
    """Address, labels, health."""
    body: bytes | None = None
    """Answers everything with this instead."""
    hang: threading.Event | None = None
    """Answers nothing until it is set."""
    since: str = field(default_factory=lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
    """Time at which the alerts began."""
    asked: list[str] = field(default_factory=list)
    """Paths with queries, and bodies that were posted."""

    def answer(self, path: str) -> bytes:
        """The body of an answer."""
        parts = urllib.parse.urlsplit(path)
        asked = dict(urllib.parse.parse_qsl(parts.query))
        data: dict[str, Any] = {"resultType": "matrix", "result": []}
        if parts.path == "/api/v1/alerts":
            data = {
                "alerts": [
                    {"labels": each, "annotations": {"summary": "It fires."}, "state": "firing", "activeAt": self.since}
                    for each in self.alerts
                ]
            }
        elif parts.path == "/api/v1/targets":
            data = {
                "activeTargets": [
                    {"scrapeUrl": url, "labels": labels, "health": health} for url, labels, health in self.targets
                ]
            }
        elif parts.path == "/api/v1/query_range":
            times = [float(asked[each]) for each in ("start", "end", "step")]
            data["result"] = self._matrix(asked["query"], *times)
        return json.dumps({"status": "success", "data": data}).encode()

    def _matrix(self, query: str, start: float, end: float, step: float) -> list[dict[str, Any]]:
        name = next(iter(re.findall(r"\b(?:kube\w+|jax\w+|up|ALERTS)\b", query)), "")
        moments = [start + step * number for number in range(int((end - start) // step) + 1)]
        return [
            {
                "metric": labels,
                "values": [
                    [at, str(value * (at - start) / 60 if name.endswith("_total") else value)] for at in moments
                ],
            }
            for labels, value in self.series.get(name, [])
        ]


@contextlib.contextmanager
def serving() -> Iterator[Stub]:
    stub = Stub()

    def answer(request: answering.Request) -> bytes:
        stub.asked.append(request.body.decode() or str(request))
        if request.body:
            return b"ok"
        if stub.hang is not None:
            stub.hang.wait(60)
        return stub.answer(request) if stub.body is None else stub.body

    with answering.serving(answer) as stub.url:
        try:
            yield stub
        finally:
            if stub.hang is not None:
                stub.hang.set()
