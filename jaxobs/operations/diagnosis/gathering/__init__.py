"""Reads whatever there is about an incident into `Evidence`: one module for each kind of source."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from jaxobs.operations.diagnosis.evidence import Evidence, Observation, Source
from jaxobs.operations.diagnosis.gathering import event_logs, logs, metrics, prometheus, targets

WINDOW = 3600.0
"""Seconds of history that a Prometheus is asked for."""
TIMEOUT = 5.0
"""Seconds for one answer."""
BUDGET = 30.0
"""Seconds for all answers of one Prometheus."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Where to look: paths and addresses."""

    logs: tuple[str, ...] = ()
    event_logs: tuple[str, ...] = ()
    metrics_files: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    prometheus: tuple[str, ...] = ()


def collect(
    inputs: Inputs, signs: Sequence[str], names: Sequence[str], *, now: float | None = None,
    window: float = WINDOW, timeout: float = TIMEOUT,
) -> Evidence:  # fmt: skip
    """Everything that the inputs show. What cannot be read is a source with a problem, never an error.

    Args:
      signs: regular expressions of lines that show something.
      names: metrics that show something.
      now: end of the window of a Prometheus, in seconds since the epoch; the present if None.
    """
    found: list[Observation] = []
    sources: list[Source] = []

    def take(read: tuple[list[Observation], Source]) -> None:
        found.extend(read[0])
        sources.append(read[1])

    shown = _names((*inputs.logs, *inputs.event_logs, *inputs.metrics_files))
    for path in dict.fromkeys(inputs.event_logs):
        take(event_logs.read(path, shown[path]))
    for path in dict.fromkeys(inputs.metrics_files):
        take(metrics.read(path, shown[path]))
    for path in dict.fromkeys(inputs.logs):
        take(logs.read(path, shown[path], signs, _year_of(path)))
    for url in dict.fromkeys(inputs.targets):
        take(targets.read(url, timeout))
    for url in dict.fromkeys(inputs.prometheus):
        end = time.time() if now is None else now
        take(prometheus.read(url, names, now=end, window=window, timeout=timeout, budget=BUDGET))
    return Evidence.of(_dated(found), sources)


def _names(paths: Iterable[str]) -> dict[str, str]:
    """What to call files: by their names where these differ."""
    unique = list(dict.fromkeys(paths))
    short = [os.path.basename(each) for each in unique]
    return {path: name if short.count(name) == 1 else path for path, name in zip(unique, short, strict=True)}


def _year_of(path: str) -> int:
    """The year for times without one, unless another source says it."""
    try:
        return time.gmtime(os.stat(path).st_mtime).tm_year
    except (OSError, ValueError, OverflowError):
        return 1970


def _dated(found: Sequence[Observation]) -> list[Observation]:
    """Times without a year get that of the earliest time that has one."""
    known = min((each.time for each in found if each.time is not None and "yearless" not in each.data), default=None)
    if known is None:
        return list(found)
    year = time.gmtime(known).tm_year
    return [_in_year(each, year) if each.time is not None and "yearless" in each.data else each for each in found]


def _in_year(one: Observation, year: int) -> Observation:
    moment = datetime.datetime.fromtimestamp(one.time or 0.0, datetime.timezone.utc)
    try:
        return replace(one, time=moment.replace(year=year).timestamp())
    except ValueError:  # the 29th of February
        return one
