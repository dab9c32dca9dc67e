"""Seconds that the stopwatch in a program of the zoo measured, by the categories that it can distinguish."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "watch"
"""To be first on the program's path."""
MARKED = ("step", "eval", "checkpoint", "input_wait")
GROUPS: Mapping[str, tuple[str, ...]] = {
    "compile": ("trace", "compile", "cache_load"),
    **{each: (each,) for each in MARKED},
}
"""Categories of jaxobs that are compared, by the name that the stopwatch has for them; all others are `other`."""

_MARK = re.compile(r"^( *)#: (\w+)$", re.MULTILINE)
_ENDED = re.compile(r"^( *)#: ended (.+)$", re.MULTILINE)


def with_marks(source: str) -> str:
    """The program with its marks as calls, each in the line of its comment."""
    source = _MARK.sub(r'\1zoo_mark("\2")', source)
    return _ENDED.sub(r"\1zoo_ended(\2)", source)


def seconds(path: Path) -> tuple[dict[str, float], int]:
    """Seconds by category, of which each belongs to one, and the number of programs that were compiled."""
    told = json.loads(path.read_text())
    spans = _spans(told)
    found: defaultdict[str, float] = defaultdict(float)
    for begin, end, category in spans:
        found[category] += end - begin
    for begin, end in _union(told["compiling"]):
        found["compile"] += end - begin
        for category, taken in _within(spans, begin, end):
            found[category] -= taken
    return dict(found), told["programs"]


def _spans(told: Mapping[str, Any]) -> list[tuple[float, float, str]]:
    """The process's time without a gap: what is in no category is `other`."""
    edges = [(told["began"], "other"), *told["marks"]]
    spans = [
        (begin, end, category if category in MARKED else "other")
        for (begin, category), end in zip(edges, [each[0] for each in edges[1:]] + [told["ended"]], strict=True)
    ]
    for begin, end, category in told["past"]:
        spans = [part for each in spans for part in _cut(each, begin, end)]
        spans.append((begin, end, category))
    return sorted(spans)


def _cut(span: tuple[float, float, str], begin: float, end: float) -> Iterable[tuple[float, float, str]]:
    """Yields the parts of a span that lie outside of begin and end."""
    first, last, category = span
    if first < begin:
        yield first, min(last, begin), category
    if last > end:
        yield max(first, end), last, category


def _union(intervals: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """JAX tells of what is traced within another trace as well."""
    found: list[tuple[float, float]] = []
    for begin, end in sorted(map(tuple, intervals)):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def _within(spans: list[tuple[float, float, str]], begin: float, end: float) -> Iterable[tuple[str, float]]:
    number = max(0, bisect_right(spans, (begin, float("inf"), "")) - 1)
    for first, last, category in spans[number:]:
        if first >= end:
            break
        if last > begin:
            yield category, min(last, end) - max(first, begin)
