"""The host's record next to a trace: waits for input, checkpoints, collections, jaxobs' own steps."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jaxobs.base import json_lines
from jaxobs.profiles import intervals
from jaxobs.profiles.intervals import Interval

FILE = "jaxobs-host.json"
MOST_BYTES = 16 * 2**20
REASON_OF = {
    "input_wait": "input", "checkpoint": "checkpoint", "trace": "compile", "compile": "compile",
    "cache_load": "compile", "transfer": "transfer", "garbage_collection": "garbage_collection",
}  # fmt: skip
"""The reason for idle time that a category of the account of time stands for."""
_ABOVE = 4
"""Folders above a trace in which it may lie: `CAPTURE/plugins/profile/TIME/HOST.xplane.pb`."""


def find(trace: Path) -> dict[str, list[Interval]]:
    """Returns the spans recorded next to a trace by category, in nanoseconds since the epoch; none without a record."""
    for folder in list(trace.absolute().parents)[:_ABOVE]:
        path = folder / FILE
        try:
            if path.is_file() and path.stat().st_size <= MOST_BYTES:
                return _read(json_lines.loads(path.read_bytes()))
        except (OSError, ValueError, RecursionError):
            return {}
    return {}


def _read(body: Any) -> dict[str, list[Interval]]:
    spans = body.get("spans") if isinstance(body, dict) else None
    found: dict[str, list[Interval]] = {}
    for category, each in spans.items() if isinstance(spans, dict) else ():
        if isinstance(each, list):
            found[str(category)] = [
                (float(span[0]), float(span[1]))
                for span in each
                if isinstance(span, list) and len(span) == 2 and all(type(at) in (int, float) for at in span)
            ]
    return found


def reasons(spans: Mapping[str, Sequence[Interval]], began: float) -> dict[str, list[Interval]]:
    """By reason for idle time, on the clock of a trace that began at a moment of the epoch."""
    found: dict[str, list[Interval]] = {}
    for category, each in spans.items():
        reason = REASON_OF.get(category)
        if reason is not None:
            found.setdefault(reason, []).extend((start - began, end - began) for start, end in each)
    return {reason: intervals.union(each) for reason, each in found.items()}


def steps(spans: Mapping[str, Sequence[Interval]], began: float, window: Interval) -> list[Interval]:
    """Returns the steps that ended in the window of a trace."""
    moved = [(start - began, end - began) for start, end in spans.get("step", ())]
    return sorted((start, end) for start, end in moved if window[0] <= end <= window[1])
