"""Compares two runs."""

from collections.abc import Callable

from jaxobs.base.errors import did_you_mean
from jaxobs.facts.events import plain
from jaxobs.ops.assistants.answers import Answer, Name, RefusedError, Sources, no_data, ok, silent
from jaxobs.views import comparing


def make(sources: Sources) -> Callable[..., Answer]:
    def compare_runs(before: Name, after: Name, index: int = 0) -> Answer:
        """Compares two runs: what got worse, and by how much. Both are names of event logs from list_processes."""
        known = sources.event_logs()
        if not known:
            return no_data("The server was started without --event-log.")
        for name in (before, after):
            if name not in known:
                raise RefusedError(
                    f"`{name}` is not an event log here. {did_you_mean(name, known)}Known: {', '.join(known)}."
                )
        try:
            runs = comparing.read_run(known[before], index), comparing.read_run(known[after], index)
        except (comparing.NoRunError, OSError) as error:
            return silent(ValueError(str(error).replace(known[before], before).replace(known[after], after)))
        comparison = comparing.compare(*runs)
        a, b = runs[0].loop, runs[1].loop
        loops = a, (a if a in runs[1].loops else b)
        rows = comparing.measured(*runs, {}, loops)
        return ok(
            "`change` is the part by which a figure of `after` differs; `noise` is what differs by chance.",
            {
                "verdict": plain(comparing.judge(comparison, rows, loops)),
                "figures": [
                    {"name": each.measure.name, "unit": each.measure.unit, "before": each.before, "after": each.after,
                     "change": each.change, "noise": each.noise, "judged": each.judged}
                    for each in rows if None not in (each.before, each.after)
                ],
                "differences": plain(comparison.differences),
            },
        )  # fmt: skip

    return compare_runs
