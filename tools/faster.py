"""The generated rules, and Alertmanager's configuration, on a faster clock: what takes an hour takes a minute.

Alerts wait for minutes and look back for hours. A test that injects real faults has a minute: it divides all durations
by one factor, and scrapes and evaluates as many times more often, so that each range holds as many samples as before.

    groups = [faster.group(each, 60) for each in alerting.alert_groups(Site())]

What programs measure of themselves, as the seconds of a step or of a compilation, is left as it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

Config = dict[str, Any]

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000, "y": 31_536_000_000}
_DURATION = r"(?:\d+(?:ms|[smhdwy]))+"
_TOKEN = re.compile(rf'"(?:[^"\\]|\\.)*"|[a-zA-Z_][\w:]*|(?P<duration>{_DURATION})\b|\d[\w.]*')
"""Strings, names and numbers are told apart from durations; what lies between matters to nobody here."""

_SELECTOR = r"(?:\w+ by \([^)]*\) \(|\w+\()?[\w:]+(?:\{[^}]*\})?(?:\[\w+\])?"
_AGES = re.compile(
    rf"(?P<age>time\(\) - {_SELECTOR}\)*\s*(?:-|[<>]=?)\s*(?:bool\s+)?)(?P<limit>\d+(?:\.\d+)?)"
    r"|(?P<ago>time\(\) - )(?P<since>\d+(?:\.\d+)?)"
    r"|(?P<turns>\* 20 < )(?P<window>\d+)"
    r"|(?P<began>timestamp_seconds(?:\{[^}]*\})?\[\w+\] offset \w+\) > bool )(?P<apart>\d+)"
    r"|(?P<ahead>predict_linear\([\w:]+(?:\{[^}]*\})?\[\w+\], )(?P<later>\d+)"
)
"""Seconds by the clock as plain numbers: an age and its limit, or the seconds taken from it, a time ago, a window that
steps are held against, how far apart two starts of a process are, and how far ahead something is predicted."""


def milliseconds(duration: str) -> int:
    """A duration of Prometheus in milliseconds.

    Raises:
      ValueError: it is none.
    """
    if not re.fullmatch(_DURATION, duration):
        raise ValueError(f"{duration!r} is no duration of Prometheus, as 1h30m is.")
    return sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)(ms|[smhdwy])", duration))


def duration(text: str, factor: float) -> str:
    """A duration divided by a factor, to the millisecond.

    Raises:
      ValueError: it is no duration.
    """
    found = math.ceil(milliseconds(text) / factor)
    return f"{found}ms" if found % 1000 else f"{found // 1000}s"


def expression(expr: str, factor: float) -> str:
    """PromQL with its ranges, offsets and ages divided by a factor.

    Raises:
      ValueError: it asks for the time in a way that is not known here.
    """
    known = sum(1 for found in _AGES.finditer(expr) if found["age"] or found["ago"])
    if expr.count("time()") != known:
        raise ValueError(f"Which of these are seconds by the clock? {expr}")

    def age(found: re.Match[str]) -> str:
        before = found["age"] or found["ago"] or found["turns"] or found["began"] or found["ahead"]
        seconds = float(found["limit"] or found["since"] or found["window"] or found["apart"] or found["later"])
        return f"{before}{seconds / factor:.15g}"

    def token(found: re.Match[str]) -> str:
        return found[0] if found["duration"] is None else duration(found[0], factor)

    return _TOKEN.sub(token, _AGES.sub(age, expr))


def group(given: Mapping[str, Any], factor: float) -> Config:
    """A group of rules on the faster clock.

    Raises:
      ValueError: an expression asks for the time in a way that is not known here.
    """
    found = {**given, "interval": duration(given["interval"], factor)}
    found["rules"] = [
        {
            **rule,
            "expr": expression(rule["expr"], factor),
            **{name: duration(rule[name], factor) for name in ("for", "keep_firing_for") if name in rule},
        }
        for rule in given["rules"]
    ]
    return found


def route(given: Mapping[str, Any], factor: float) -> Config:
    """A route of Alertmanager on the faster clock, those below it included."""
    found = dict(given)
    for name in ("group_wait", "group_interval", "repeat_interval"):
        if name in given:
            found[name] = duration(given[name], factor)
    if "routes" in given:
        found["routes"] = [route(each, factor) for each in given["routes"]]
    return found


def alertmanager(given: Mapping[str, Any], factor: float, webhook: str) -> Config:
    """Alertmanager's configuration on the faster clock: each receiver posts to `<webhook>/<its name>`."""
    receivers = [
        {**each, "webhook_configs": [{"url": f"{webhook}/{each['name']}", "send_resolved": True}]}
        for each in given["receivers"]
    ]
    return {**given, "route": route(given["route"], factor), "receivers": receivers}
