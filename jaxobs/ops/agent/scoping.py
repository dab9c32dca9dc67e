"""Finds the labels of an alert that its series have: a Prometheus adds its `external_labels` to alerts, not to series.

Whoever asks that Prometheus for `up{job="train", cluster="eu"}` gets nothing, and would take a job that runs for one
that nobody knows.
"""

from __future__ import annotations

from collections.abc import Mapping

from jaxobs.ops.agent.subjects import Subject
from jaxobs.ops.diagnosis.gathering import prometheus_api
from jaxobs.ops.diagnosis.gathering.prometheus_api import Window
from jaxobs.ops.monitoring.promql import GROUPING, quoted

DAYS = 3
"""Days for which an ended job is still one that was seen."""


def in_series(prometheus: str, subject: Subject, window: Window, timeout: float) -> Subject:
    """Returns a subject without the labels that none of its series has; the same one if Prometheus does not say.

    A label that some series have stays, with another value too: then they are about something else.
    """
    own = _own(subject)
    places = sorted(name for name in subject.scope if name in GROUPING and name not in own)
    if not own or not places:
        return subject
    query = f'count by ({", ".join(places)}) ({{__name__=~"up|jax_process_start_timestamp_seconds", {_chosen(own)}}})'
    found = prometheus_api.range_of(prometheus, query, window, timeout).lines
    strange = {name for name in places if found and not any(each.labels.get(name) for each in found)}
    return Subject(tuple((name, value) for name, value in subject.labels if name not in strange))


def was_seen(prometheus: str, subject: Subject, until: float, timeout: float) -> bool:
    """Returns whether Prometheus had metrics of jaxobs from a subject within the last days."""
    query = f"last_over_time(jax_process_start_timestamp_seconds{{{_chosen(_own(subject))}}}[{DAYS}d])"
    return bool(prometheus_api.range_of(prometheus, query, Window(end=until, seconds=1.0, step=1.0), timeout).lines)


def _own(subject: Subject) -> dict[str, str]:
    return {name: value for name, value in subject.scope.items() if name in ("job", "instance")}


def _chosen(own: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={quoted(value)}" for name, value in sorted(own.items()))
