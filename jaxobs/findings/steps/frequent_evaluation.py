"""`frequent_evaluation`: a program that trains spends most of its time on evaluations between its steps."""

from collections.abc import Iterator

from jaxobs.facts.loops import LoopState
from jaxobs.findings import parts
from jaxobs.findings.cases import Case, Scene
from jaxobs.loops.call_places import evaluates

NAME = "frequent_evaluation"
NEEDS = Scene

LEAST_SHARE = 0.5
"""Share of the latest minutes."""
LEAST_SECONDS = 10.0
FEWEST = 3
"""Evaluations in these minutes: a test at the end is one, and so is a look at the parameters before the training."""
MOST_STEPS = 10
"""Steps of a declared loop for each evaluation: with more, it may wait for these as long as it computes."""
LETS_GO = 12
"""A minute of looks: a share near the bound comes and goes."""


def find(scene: Scene) -> Iterator[Case]:
    """Yields a case for the loop that trains, while steps follow the evaluations."""
    wall, loops = scene.snapshot.wall, [each for each in scene.snapshot.loops if _trains(each)]
    if wall is None or wall.evaluations < FEWEST or not loops:
        return
    span = parts.spans(scene.snapshot)[-1]
    spent, line = span.worked.get("evaluation", 0.0), parts.line_of("eval", scene.snapshot)
    loop = max(loops, key=lambda each: each.ended or 0.0)
    pause = max(parts.SHORT, 2.0 * spent / wall.evaluations, 2.0 * (loop.mean_seconds or 0.0))
    if spent < LEAST_SECONDS or spent <= LEAST_SHARE * span.total or scene.time - (loop.ended or 0.0) > pause:
        return
    steps = loop.steps * span.total / parts.total(scene.snapshot)
    few = steps <= MOST_STEPS * wall.evaluations
    if not (few or loop.found):
        return
    often = "every 20th step or once an epoch" if few else "a tenth as often"
    where = None if line is None else line[1].line
    yield Case(
        function=loop.name,
        summary=f"Between its steps of `{loop.name}` the program evaluates for {parts.percent(spent / span.total)} of "
        f"{span.of}{f', above all at {where}' if where else ''}.",
        advice=f"Unless the steps need its results: evaluate less often, such as {often}, or on a part of the data, "
        "and read the results once per evaluation.",
        where=where, count=loop.steps, seconds=wall.seconds.get("eval", 0.0),
        evidence=["The end of a step that was still running when an evaluation began may be a part of this."],
        data={"loop": loop.name, "share": spent / span.total},
    )  # fmt: skip


def _trains(loop: LoopState) -> bool:
    return (loop.carries or not loop.found) and not evaluates(loop.name)
