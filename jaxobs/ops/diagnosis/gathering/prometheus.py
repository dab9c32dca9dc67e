"""A Prometheus: firing alerts, and how metrics went over the last time. Asked with fixed expressions only."""

import dataclasses
import datetime
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from jaxobs.ops.diagnosis.counters import BUILD, STARTED, place_labels, places, since
from jaxobs.ops.diagnosis.evidence import ALERT, MOST_TEXT, Evidence, Observation, Source
from jaxobs.ops.diagnosis.gathering import lives, metrics
from jaxobs.ops.diagnosis.gathering.http import Answers, Asked, NoAnswerError, TooLateError, shown
from jaxobs.ops.diagnosis.gathering.prometheus_api import MOST_SERIES, Window, ask, dicts, labels_of, points_of
from jaxobs.ops.diagnosis.knowledge import FINDINGS, UP
from jaxobs.ops.monitoring import promql
from jaxobs.views.client import is_url

MOST_ALERTS = 500
AT_ONCE = 4
"""Queries that a Prometheus is asked at a time."""
_TOO_LATE = "the budget of {:g} s was used up before all metrics were asked for"
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


def read(
    url: str, names: Sequence[str], *, now: float, window: float, timeout: float, budget: float, answers: Answers,
    scope: Mapping[str, str] | None = None,
) -> tuple[list[Observation], Source]:  # fmt: skip
    """What a Prometheus shows.

    Args:
      names: metrics to ask for.
      scope: labels, with their values, that a series and an alert must have; any if None.
      now: end of the window, in seconds since the epoch.
      window: seconds.
      timeout: seconds for one answer.
      budget: seconds for all answers.
    """
    source = shown(url)
    if not is_url(url):
        return [], Source(kind="prometheus", name=source, problem="give a URL such as http://prometheus:9090")
    until = time.monotonic() + budget
    try:
        found = _alerts(ask(url, "alerts", timeout, answers=answers, until=until), source, scope or {})
    except NoAnswerError as error:
        return [], Source(kind="prometheus", name=source, problem=str(error))

    def history(name: str) -> tuple[list[Observation], str]:
        asked = Window(end=now, seconds=window).asking(_query(name, scope or {}, window))
        try:
            body = ask(url, "query_range", timeout, asked, answers=answers, until=until)
        except TooLateError:
            return [], _TOO_LATE.format(budget)
        except NoAnswerError as error:
            return [], f"{name}: {error}"
        own = {} if place_labels(name) else scope or {}
        return [each for each in _series(body, name, source, now - window + 1) if _fits(each.data, own)], ""

    notes: dict[str, None] = {}
    # What is recorded has an order.
    with ThreadPoolExecutor(AT_ONCE if isinstance(answers, Asked) else 1) as pool:
        for observations, note in pool.map(history, sorted(set(names))):
            found += observations
            notes |= dict.fromkeys([note] if note else [])
    return _of_places([*lives.apart(found)]), Source(kind="prometheus", name=source, notes=tuple(notes))


def _query(name: str, scope: Mapping[str, str], window: float) -> str:
    """What is asked of one metric: of kube-state-metrics what it says of the pods and nodes of the job in the scope."""
    on = place_labels(name)
    if not on or not scope:
        return f"{name}{selector(scope)}"
    return f"{name} and on ({', '.join(on)}) last_over_time({STARTED}{selector(scope)}[{window:.0f}s])"


def _of_places(found: list[Observation]) -> list[Observation]:
    """Each that is about a pod as one of its process, and each that is about a node as one of the node."""
    evidence = Evidence(tuple(found), ())

    def named(one: Observation) -> Observation:
        on = place_labels(one.name)
        if not on:
            return one
        place = tuple(one.data.get(name, "") for name in on)
        known = places(evidence, one.source, on).get(place, "") if len(on) > 1 else ""
        return dataclasses.replace(one, process=known or place[-1])

    return [named(each) for each in found]


def _fits(labels: Mapping[str, str], scope: Mapping[str, str]) -> bool:
    """Whether no label says that it is about something else: not every server heeds matchers."""
    return all(labels.get(name, value) == value for name, value in scope.items())


def selector(scope: Mapping[str, str]) -> str:
    """Labels as PromQL selects by them; empty without any. Their values are data: they are quoted."""
    wanted = ", ".join(f"{name}={promql.quoted(value)}" for name, value in sorted(scope.items()))
    return f"{{{wanted}}}" if wanted else ""


def _alerts(data: Mapping[str, Any], source: str, scope: Mapping[str, str]) -> list[Observation]:
    found = []
    everything = [(each, labels_of(each.get("labels"))) for each in dicts(data.get("alerts"))]
    wanted = [(each, labels) for each, labels in everything if _fits(labels, scope)]
    for place, (each, labels) in enumerate(wanted[:MOST_ALERTS]):
        if each.get("state") != "firing" or "alertname" not in labels:
            continue
        notes = labels_of(each.get("annotations"))
        name = labels["alertname"]
        found.append(
            Observation(
                kind=ALERT, source=source, place=place, name=name, time=_moment(each.get("activeAt")),
                process=metrics.of_sample("", labels, 0, "", 0, None).process,
                text=f"{name} fires: {notes.get('summary', '')}"[:MOST_TEXT], data=labels,
            )
        )  # fmt: skip
    return found


def _series(data: Mapping[str, Any], name: str, source: str, start: float) -> list[Observation]:
    """One observation of each series: of a counter its growth and when that began, else the latest value and its time.

    The time of a sample that is the time of a start is that, and that of a state when it began.

    A counter that appears within the window, which begins at `start`, grew from 0.
    """
    found = []
    for place, each in enumerate(dicts(data.get("result"))[:MOST_SERIES]):
        labels = labels_of(each.get("metric"))
        points = points_of(each.get("values"))
        if not points:
            continue
        onset, value = points[-1]
        if lives.is_counter(name):
            value, onset = lives.growth([*([(points[0][0], 0.0)] if points[0][0] > start else []), *points])
        elif name.endswith("_start_timestamp_seconds") and value > 0:
            onset = value
        sample = metrics.of_sample(name, labels, value, source, place, onset)
        sample = dataclasses.replace(sample, history=tuple(points))
        is_state = name in (UP, FINDINGS, BUILD) or name.startswith("kube_")
        found.append(dataclasses.replace(sample, time=since(sample)) if is_state else sample)
    return found


def _moment(text: Any) -> float | None:
    try:
        return datetime.datetime.fromisoformat(
            re.sub(r"(\.\d{6})\d+", r"\1", str(text)).replace("Z", "+00:00")
        ).timestamp()
    except (ValueError, OverflowError):
        return None


def metric_names(names: Iterable[str]) -> list[str]:
    """Those that are names of metrics, and nothing else that could be an expression."""
    return [each for each in names if _NAME.fullmatch(each)]
