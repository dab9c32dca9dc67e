"""How a process is doing."""

from collections.abc import Callable

from jaxobs.facts.events import plain, timestamp
from jaxobs.ops.assistants import processes
from jaxobs.ops.assistants.answers import Answer, Name, Sources, ok


def make(sources: Sources) -> Callable[..., Answer]:
    def job_state(process: Name = "", index: int = 0) -> Answer:
        """How one process is doing: steps, where its time went, what compiles now, requests, input, versions.

        `process` is a name from list_processes; `index` chooses among the processes of one event log.
        """
        found = processes.one(sources, process, index)
        now = found.snapshot
        wall = now.wall
        return ok(
            f"State at {timestamp(now.time)}, in seconds and bytes. A verdict of `fix` is worth acting on.",
            {
                "process": plain(now.process),
                "verdict": None if now.verdict is None else now.verdict.verdict,
                "headline": None if now.verdict is None else now.verdict.headline,
                "seconds_by_category": {} if wall is None else plain(wall.seconds),
                "now_in": None if wall is None else wall.category,
                "steps": None if wall is None else wall.steps,
                "goodput": None if wall is None else wall.goodput,
                "loops": [
                    {name: value for name, value in plain(each).items() if not isinstance(value, dict | list)}
                    for each in now.loops
                ],
                "compiling_now": plain(now.in_progress),
                "compilations": len(found.compilations),
                "inputs": [
                    {"name": each.name, "verdict": each.verdict, "summary": each.summary} for each in now.inputs
                ],
                "routes": [{"route": each.route, "requests": each.total} for each in now.routes],
                "nonfinite": [plain(each) for each in now.watched],
                "observer_errors": plain(now.observer.internal_errors),
            },
        )

    return job_state
