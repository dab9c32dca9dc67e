"""Which functions' exchanges between devices hold these up, because nothing else runs meanwhile."""

from collections import defaultdict

from jaxobs.profiles import intervals
from jaxobs.profiles.intervals import Interval
from jaxobs.profiles.programs import Programs
from jaxobs.profiles.tracks import Run, Trace

NANO = 1e-9


def by_function(trace: Trace, programs: Programs | None = None) -> dict[str, float]:
    """Returns the seconds by function over all devices, of those that exchange data; `programs` are known ones."""
    programs = programs or Programs(trace.programs)

    def category(run: Run) -> str:
        return programs.operation(run.operation, run.module, run.program, run.stats).category

    found: dict[str, float] = defaultdict(float)
    for track in trace.tracks:
        exchanges: dict[str, list[Interval]] = defaultdict(list)
        others: list[Interval] = []
        for row in track.rows:
            for start, end, run in intervals.own_time(row):
                what = category(run)
                if what == "collective":
                    exchanges[programs.function(run.module, run.program)].append((start, end))
                elif what != "control":
                    others.append((start, end))
        for row in track.aside:
            for run in row:
                if category(run) == "collective":
                    exchanges[programs.function(run.module, run.program)].append((run.start, run.end))
        computing = intervals.union(others)
        for function, spans in exchanges.items():
            found[function] += intervals.total(intervals.without(intervals.union(spans), computing)) * NANO
    return dict(found)
