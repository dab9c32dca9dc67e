"""The Prometheus of the command line: asked by GET, within a budget of time, series and points."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxobs.base import json_lines
from jaxobs.base.errors import JaxobsError
from jaxobs.ops.assistants.answers import NotGivenError
from jaxobs.ops.assistants.sources import Sources
from jaxobs.ops.diagnosis.evidence import clean
from jaxobs.ops.diagnosis.gathering.answers import shown
from jaxobs.ops.diagnosis.gathering.http import NoAnswerError, fetch

MOST_SERIES = 200
_TIMEOUT = 5.0


class SilentError(JaxobsError):
    """There is no answer; the message says why."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a query found."""

    series: list[dict[str, Any]]
    is_cut: bool
    """Whether there were more."""


def query_range(sources: Sources, query: str, *, end: float, seconds: float, points: int, timeout: float) -> Found:
    """Series by their labels, with values over time, of each Prometheus.

    Raises:
      SilentError: there is no Prometheus, or it does not answer, or the query is wrong.
    """
    asked = {
        "query": query, "start": f"{end - seconds:.3f}", "end": f"{end:.3f}", "step": f"{max(seconds / points, 1):g}",
        "timeout": f"{timeout:g}s", "limit": str(MOST_SERIES + 1),
    }  # fmt: skip
    found: list[dict[str, Any]] = []
    for url in _all(sources):
        data = _ask(url, f"/api/v1/query_range?{urllib.parse.urlencode(asked)}", timeout)
        for each in data.get("result") or []:
            if isinstance(each, dict):
                values = each.get("values")
                found.append({"labels": each.get("metric"), "values": _points(values, points)})
    return Found(found[:MOST_SERIES], len(found) > MOST_SERIES)


def _points(values: Any, most: int) -> list[Any]:
    return [
        [each[0], each[1]] for each in values[-most:] if isinstance(each, list) and len(each) == 2
    ] if isinstance(values, list) else []  # fmt: skip


def alerts(sources: Sources) -> list[dict[str, Any]]:
    """The alerts of each Prometheus, firing ones first.

    Raises:
      SilentError: as `query_range`.
    """
    found = []
    for url in _all(sources):
        data = _ask(url, "/api/v1/alerts", _TIMEOUT)
        for each in data.get("alerts") or []:
            if isinstance(each, dict):
                wanted = ("labels", "annotations", "state", "activeAt", "value")
                found.append({name: each.get(name) for name in wanted})
    return sorted(found, key=lambda each: each["state"] != "firing")


def _all(sources: Sources) -> tuple[str, ...]:
    if not sources.inputs.prometheus:
        raise NotGivenError("The server was started without --prometheus.")
    return sources.inputs.prometheus


def _ask(url: str, path: str, timeout: float) -> Mapping[str, Any]:
    try:
        body = json_lines.loads(fetch(url.rstrip("/") + path, timeout + 1))
    except NoAnswerError as error:
        hint = ": is the query valid PromQL?" if str(error) in ("HTTP 400", "HTTP 422") else ""
        raise SilentError(f"{shown(url)} does not answer: {clean(str(error))}{hint}") from None
    except ValueError:
        raise SilentError(f"{shown(url)} answers, but not as a Prometheus does.") from None
    data = body.get("data") if isinstance(body, dict) and body.get("status") == "success" else None
    if not isinstance(data, dict):
        raise SilentError(f"{shown(url)} answers, but not as a Prometheus does.")
    return data
