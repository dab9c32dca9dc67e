"""The Prometheus of the command line, for tools: within a budget of time, series and points."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxobs.base.errors import JaxobsError
from jaxobs.ops.assistants.answers import NotGivenError, Sources
from jaxobs.ops.diagnosis.evidence import clean
from jaxobs.ops.diagnosis.gathering.http import NoAnswerError, shown
from jaxobs.ops.diagnosis.gathering.prometheus_api import NotPrometheusError, Window, ask, dicts

MOST_SERIES = 200
_TIMEOUT = 5.0


class SilentError(JaxobsError):
    """There is no answer; the message says why."""


@dataclass(frozen=True, slots=True)
class Found:
    """Series that a query found."""

    series: list[dict[str, Any]]
    is_cut: bool
    """Whether the query found more series than are kept."""


def query_range(sources: Sources, query: str, *, end: float, seconds: float, points: int, timeout: float) -> Found:
    """Returns series by their labels, with values over time, of each Prometheus.

    Raises:
      SilentError: there is no Prometheus, or it does not answer, or the query is wrong.
    """
    window = Window(end=end, seconds=seconds, step=max(seconds / points, 1))
    asked = {**window.asking(query), "timeout": f"{timeout:g}s", "limit": str(MOST_SERIES + 1)}
    found: list[dict[str, Any]] = []
    for url in _all(sources):
        for series in dicts(_ask(url, "query_range", timeout, asked).get("result")):
            found.append({"labels": series.get("metric"), "values": _points(series.get("values"), points)})
    return Found(found[:MOST_SERIES], len(found) > MOST_SERIES)


def _points(values: Any, most: int) -> list[Any]:
    return [
        [each[0], each[1]] for each in values[-most:] if isinstance(each, list) and len(each) == 2
    ] if isinstance(values, list) else []  # fmt: skip


def alerts(sources: Sources) -> list[dict[str, Any]]:
    """Returns the alerts of each Prometheus, firing ones first.

    Raises:
      SilentError: as `query_range`.
    """
    wanted = ("labels", "annotations", "state", "activeAt", "value")
    listed = [each for url in _all(sources) for each in dicts(_ask(url, "alerts", _TIMEOUT).get("alerts"))]
    found = [{name: each.get(name) for name in wanted} for each in listed]
    return sorted(found, key=lambda each: each["state"] != "firing")


def _all(sources: Sources) -> tuple[str, ...]:
    if not sources.inputs.prometheus:
        raise NotGivenError("The server was started without --prometheus.")
    return sources.inputs.prometheus


def _ask(url: str, path: str, timeout: float, parameters: Mapping[str, str] | None = None) -> Mapping[str, Any]:
    try:
        return ask(url, path, timeout + 1, parameters)
    except NotPrometheusError:
        raise SilentError(f"{shown(url)} answers, but not as a Prometheus does.") from None
    except NoAnswerError as error:
        hint = ": is the query valid PromQL?" if str(error) in ("HTTP 400", "HTTP 422") else ""
        raise SilentError(f"{shown(url)} does not answer: {clean(str(error))}{hint}") from None
