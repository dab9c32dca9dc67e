"""Lives of processes in a Prometheus: a process that was replaced says nothing of the one that replaced it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import dropwhile, pairwise
from math import log

from jaxobs.ops.diagnosis.counters import STARTED
from jaxobs.ops.diagnosis.evidence import FORMER, Observation
from jaxobs.ops.diagnosis.knowledge import HOST_MEMORY

MOST_SILENT = 300.0
"""Seconds after its last sample from which on Prometheus itself takes a series for ended."""
LEAST_GAIN = 5.0
"""Gain in log-likelihood from which on a change of rate is one: chance reaches it in two of a hundred steady series."""
_OURS = ("jax_", "jaxobs_", HOST_MEMORY)
_JOB = ("job", "namespace", "cluster")

Points = Sequence[tuple[float, float]]


def apart(found: Sequence[Observation]) -> Iterator[Observation]:
    """Yields samples by the lives of their processes.

    A counter that grew before its process was started again is two observations. What is of a former life, while the
    job goes on, has the time at which that life was over as `FORMER`.
    """
    latest = max((each.history[-1][0] for each in found if each.history), default=0.0)
    starts = {_whose(each): each for each in found if each.name == STARTED and each.history}
    going = {_job(each) for each in starts.values() if each.history[-1][0] >= latest - MOST_SILENT}
    for each in found:
        life = starts.get(_whose(each))
        if life is None or not each.history or each.name == STARTED or not each.name.startswith(_OURS):
            yield each
        elif life.history[-1][0] < latest - MOST_SILENT:
            yield _former(each, life.history[-1][0]) if _job(each) in going else each
        else:
            yield from _split(each, life)


def _split(one: Observation, life: Observation) -> Iterator[Observation]:
    (latest, start), points = life.history[-1], one.history
    before = tuple(point for point in points if point[0] < start)
    after = points[len(before) :]
    if before and (is_counter(one.name) or points[-1][0] < latest):
        # A series that has ended keeps its last value for as long as Prometheus looks back.
        last, value = before[-1]
        after = tuple(dropwhile(lambda point: point[1] == value and point[0] < last + MOST_SILENT, after))
    if not before or not after:
        yield _former(one, start) if before else one
        return
    if not is_counter(one.name):
        if one.name == HOST_MEMORY:  # by which a process may have ended
            yield _former(replace(one, value=before[-1][1], time=before[-1][0], history=before), start)
        yield replace(one, history=after)
        return
    value, onset = growth(before)
    if value > 0:
        yield _former(replace(one, value=value, time=onset, history=before), start)
    value, onset = growth([(after[0][0], 0.0), *after])
    yield replace(one, value=value, time=onset, history=after)


def is_counter(name: str) -> bool:
    """Returns whether a metric is a counter, by its name."""
    return name.endswith(("_total", "_count", "_sum"))


def growth(points: Points) -> tuple[float, float]:
    """Returns by how much a counter grew, resets included, and when what it counts began: see `_began`."""
    rises = [after - before if after >= before else after for (_, before), (_, after) in pairwise(points)]
    return sum(rises), _began([at for at, _ in points], rises)


def _began(times: Sequence[float], rises: Sequence[float]) -> float:
    """Returns when events began: where their rate changed most, by the likelihood of a Poisson process with one change.

    What happens a few times at a start, and again and again later, began later. If nothing changes, or too little is
    known, that is the first rise; the last moment if there is none.
    """
    first = next((number for number, rise in enumerate(rises) if rise > 0), None)
    if first is None:
        return times[-1]
    end = len(rises)
    while end > 1:
        total, span = sum(rises[:end]), times[end] - times[0]
        gains, seen = [0.0], 0.0
        for number in range(1, end):
            seen += rises[number - 1]
            parts = (seen, times[number] - times[0]), (total - seen, times[end] - times[number])
            gains.append(
                sum(count * log(count * span / (total * passed)) for count, passed in parts if count > 0 and passed > 0)
            )
        split = max(range(end), key=gains.__getitem__)
        if gains[split] < LEAST_GAIN:
            break
        if (total - sum(rises[:split])) / (times[end] - times[split]) > sum(rises[:split]) / (times[split] - times[0]):
            return times[max(split, first) + 1]
        end = split  # they became fewer: it began before
    return times[first + 1]


def _former(one: Observation, over: float) -> Observation:
    return replace(one, data={**one.data, FORMER: f"{over:.0f}"})


def _whose(one: Observation) -> tuple[str | None, ...]:
    return tuple(one.data.get(name) for name in (*_JOB, "pod", "instance"))


def _job(one: Observation) -> tuple[str | None, ...]:
    return tuple(one.data.get(name) for name in _JOB)
