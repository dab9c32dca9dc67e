"""Step times of the processes of one job, by their metrics, against those of their peers."""

import bisect
import itertools
import statistics
from collections.abc import Iterator, Mapping

from jaxobs.findings.fleet.straggler import LEAST_SECONDS, SLOWER
from jaxobs.ops.diagnosis import counters
from jaxobs.ops.diagnosis.evidence import Evidence, Observation

ALL_STEPS = "jax_steps_total"
_STEPS, _STEP_SECONDS = "jax_step_seconds_count", "jax_step_seconds_sum"
SECONDS = (_STEP_SECONDS, counters.TIME)
_RUN = "jax_run_info"
_LEAST_PEERS = 2
"""Peers with which a process is compared at least: with one, either may be the unusual one."""
_LEAST_MEASURED = 50
"""Steps over which a mean is taken at least: of fewer, the first ones count too much."""
_FIRST = "0"
"""Process 0 evaluates and saves for all: a mean does not tell its pauses from slow steps, and the finding does."""
WINDOWS, WINDOW = 3, 600.0
"""Windows in a row, at the end of a history, and the seconds of each."""
_Key = tuple[str | None, ...]


def _whose(sample: Observation) -> _Key:
    """Returns whose a sample is, by its address where it has one: a sample with the number of a process has that."""
    return sample.source, sample.data.get("instance", sample.process), *counters.job(sample)


def _loops(evidence: Evidence) -> Iterator[tuple[_Key, str, Observation, tuple[float, ...]]]:
    """Yields each loop of jobs of several processes: its job, its process, its seconds and its step times."""
    processes, runs = ({_whose(each): each.data for each in evidence.metric(name)} for name in (counters.PROCESS, _RUN))
    for loop, seconds, steps in (*_of_loops(evidence), *_of_processes(evidence)):
        whose = _whose(seconds)
        several = processes.get(whose, {}).get("process_count", "")
        if several.isdecimal() and int(several) > _LEAST_PEERS:
            where = seconds.source if seconds.history else None
            run = runs.get(whose, {}).get("run_id")
            key = (loop, several, where, *counters.job(seconds)[:-1], run)
            yield key, processes[whose].get("process_index", ""), seconds, _step_times(seconds, steps)


def _of_loops(evidence: Evidence) -> Iterator[tuple[str | None, Observation, Observation]]:
    """Yields loops whose steps are measured one by one: their names, seconds and numbers of steps."""
    counts = {(*_whose(each), each.data.get("loop")): each for each in evidence.metric(_STEPS)}
    for each in evidence.metric(_STEP_SECONDS):
        loop = each.data.get("loop")
        if (*_whose(each), loop) in counts:
            yield loop, each, counts[*_whose(each), loop]


def _of_processes(evidence: Evidence) -> Iterator[tuple[str | None, Observation, Observation]]:
    """Yields processes with a single loop: no name, the time that they spent in steps, and numbers of steps."""
    counts: dict[_Key, list[Observation]] = {}
    for each in evidence.metric(ALL_STEPS):
        counts.setdefault(_whose(each), []).append(each)
    for each in evidence.metric(counters.TIME):
        loops = counts.get(_whose(each), [])
        if each.data.get("category") == "step" and len(loops) == 1:
            yield None, each, loops[0]


def _step_times(seconds: Observation, steps: Observation) -> tuple[float, ...]:
    """Returns seconds of a step: over the whole time, or in the last windows of a history, the latest first."""
    if not steps.value or steps.value < _LEAST_MEASURED or seconds.value is None:
        return ()
    if not seconds.history:
        return (seconds.value / steps.value,)
    end = seconds.history[-1][0]
    found = []
    for number in range(int((end - seconds.history[0][0]) // WINDOW)):
        taken, made = (_grown(each, end - (number + 1) * WINDOW, end - number * WINDOW) for each in (seconds, steps))
        if taken <= 0 or made <= 0:
            break
        found.append(taken / made)
    return tuple(found) if len(found) >= WINDOWS else ()


def _grown(counter: Observation, begin: float, end: float) -> float:
    times = [at for at, _ in counter.history]
    first, last = bisect.bisect_left(times, begin), bisect.bisect_right(times, end) - 1
    return counter.history[last][1] - counter.history[first][1] if first < last else 0.0


def slow_windows(evidence: Evidence) -> Mapping[int, int]:
    """Returns the windows up to now in which steps took longer than the peers', by the `id` of the sum of seconds."""
    jobs: dict[_Key, list[tuple[str, Observation, tuple[float, ...]]]] = {}
    for key, process, seconds, times in _loops(evidence):
        if times:
            jobs.setdefault(key, []).append((process, seconds, times))
    found = {}
    for members in jobs.values():
        if len({process for process, _, _ in members}) < len(members):
            continue  # of several runs, with nothing that tells them apart
        usual: list[float] = []
        for number in range(max(len(times) for _, _, times in members)):
            known = [times[number] for _, _, times in members if len(times) > number]
            if len(known) <= _LEAST_PEERS:
                break
            usual.append(statistics.median(known))
        for process, seconds, times in members:
            if process == _FIRST:
                continue
            pairs = zip(times, usual, strict=False)
            slow = itertools.takewhile(lambda pair: pair[0] > max(SLOWER * pair[1], pair[1] + LEAST_SECONDS), pairs)
            found[id(seconds)] = len(list(slow))
    return found
