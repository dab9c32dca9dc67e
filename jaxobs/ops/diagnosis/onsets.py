"""When a cause began. Its first sign may come later: after a time limit, with an alert, or in a line without a time."""

import re
from collections.abc import Sequence

from jaxobs.ops.diagnosis.evidence import ALERT, LAST, LINE, METRIC, PROGRESS, Courses, Evidence, Observation
from jaxobs.ops.diagnosis.gathering.log_times import either
from jaxobs.ops.diagnosis.knowledge import ENDED, STUCK, Knowledge

_WAITED = re.compile(
    rf"(?:{either('waits')})"
    r"(?P<time>(?:\d+(?:\.\d+)? ?(?:milliseconds?|msecs?|ms|hours?|h|minutes?|mins?|m|seconds?|secs?|s)(?![a-z]) ?)+)"
)
"""How long somebody waited until this was said."""
_PART = re.compile(r"(\d+(?:\.\d+)?) ?(h|ms|milli|m|s)")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "milli": 0.001}
LONGEST = 86_400.0
"""Seconds that are believed."""


def began(
    known: Knowledge, strong: Sequence[Observation], weak: Sequence[Observation], evidence: Evidence, course: Courses
) -> float | None:
    """Seconds since the epoch; None if the sources have no clock.

    Args:
      strong: its signs, the first of them first.
      weak: what other faults show as well.
    """
    one = strong[0]
    if known.since is not None and one.kind == METRIC:
        return known.since(evidence, one)
    if one.kind == ALERT:
        # An alert fires some time after what it measures began.
        earlier = [each.time for each in weak if each.kind != ALERT and each.time is not None]
        return min([each for each in (*earlier, one.time) if each is not None], default=None)
    if one.time is None:
        return _by_others(known, one, evidence)
    if known.impact == STUCK and one.kind in (LINE, LAST) and (step := _last_step(one, course)) is not None:
        return step
    return one.time - _waited(one.text) if one.kind == LINE else one.time


def _by_others(known: Knowledge, one: Observation, evidence: Evidence) -> float | None:
    """Of a sign without a time: the next time in its log, or when the job was last heard of that it ended."""
    if "at_most" in one.data:
        return float(one.data["at_most"])
    heard = [each for each in evidence.of_kind(LAST, PROGRESS) if each.time is not None]
    if known.impact != ENDED or len({(each.source, each.process) for each in heard}) != 1:
        return None
    return max(each.time or 0.0 for each in heard)


def _last_step(one: Observation, course: Courses) -> float | None:
    """When the process made the last step before it said that it was stuck."""
    before = [each for each in course.get((one.source, one.process), ()) if each.place < one.place]
    last = max(before, key=lambda each: each.place, default=None)
    return last.time if last is not None and last.kind == PROGRESS else None


def _waited(text: str) -> float:
    found = _WAITED.search(text)
    parts = _PART.findall(found.group("time")) if found is not None else []
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return seconds if seconds <= LONGEST else 0.0
