"""Why devices had nothing to do: what the host did then, as far as the trace itself tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jaxobs.profiles import intervals
from jaxobs.profiles.intervals import Interval
from jaxobs.profiles.tracks import Trace


def reasons(trace: Trace, busy: Mapping[str, Sequence[Interval]]) -> list[tuple[str, float]]:
    total = sum(intervals.total(intervals.without([trace.window], each)) for each in busy.values())
    return [("unknown", total)] if total else []
