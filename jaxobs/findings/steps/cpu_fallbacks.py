"""`cpu_fallbacks`: operators of PyTorch that torch_xla runs on the CPU, each with a copy to the host and back."""

from collections.abc import Iterator

from jaxobs.findings.cases import Case, Scene
from jaxobs.findings.compilations.support.case import times

NAME = "cpu_fallbacks"
NEEDS = Scene

FEWEST = 3
"""Runs of one operator: what runs once or twice is part of the preparations."""
MOST_SHOWN = 8


def find(scene: Scene) -> Iterator[Case]:
    """Yields a case for each operator."""
    steps = max((each.steps for each in scene.snapshot.loops), default=0)
    for ran in scene.snapshot.fallbacks[:MOST_SHOWN]:
        if ran.count < FEWEST:
            continue
        often = 0 < steps <= ran.count
        place = f" at {ran.where}" if ran.where else ""
        yield Case(
            subject=ran.operator,
            severity="warning" if often else "info",
            summary=(
                f"torch_xla has no lowering of `{ran.operator}` and ran it on the CPU {times(ran.count)}{place}"
                f"{', as often as the loop has steps' if often else ''}: every run ends the graph, "
                "waits for the device, and copies the arguments to the host and the results back."
            ),
            advice=(
                "Express it by operators that torch_xla lowers, compute it outside the loop, or compute it from a "
                "value that is on the host already."
                + ("" if ran.where else " Its line was not seen: search the program for the operator.")
            ),
            where=ran.where,
            count=ran.count,
            since=ran.since,
            data={"operator": ran.operator, "steps": steps},
        )
