"""One process or device is slower than all others."""

from __future__ import annotations

import bisect
import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence

from jaxobs.findings.fleet.straggler import LEAST_SECONDS, SLOWER
from jaxobs.ops.diagnosis import counters
from jaxobs.ops.diagnosis.evidence import Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import FINDINGS, SLOW, Alert, Event, Knowledge, Metric

STEPS, STEP_SECONDS = "jax_step_seconds_count", "jax_step_seconds_sum"
ALL_STEPS = "jax_steps_total"
SECONDS = (STEP_SECONDS, counters.TIME)
RUN = "jax_run_info"
LEAST_PEERS = 2
"""Of two processes, either may be the unusual one."""
LEAST_STEPS = 50
"""Over fewer, the first ones count too much."""
FIRST = "0"
"""Process 0 evaluates and saves for all: a mean does not tell its pauses from slow steps, and the finding does."""
WINDOWS, WINDOW = 3, 600.0
"""Windows in a row, at the end of a history, and the seconds of each."""


Key = tuple[str | None, ...]


def _whose(sample: Observation) -> Key:
    """By its address, where there is one: the sample that has the number of a process is named by that."""
    return sample.source, sample.data.get("instance", sample.process), *counters.job(sample)


def _loops(evidence: Evidence) -> Iterator[tuple[Key, str, Observation, tuple[float, ...]]]:
    """Each loop of a process of several: what its job has in common, its number, its seconds and its step times."""
    processes, runs = ({_whose(each): each.data for each in evidence.metric(name)} for name in (counters.PROCESS, RUN))
    for loop, seconds, steps in (*_of_loops(evidence), *_of_processes(evidence)):
        whose = _whose(seconds)
        several = processes.get(whose, {}).get("process_count", "")
        if several.isdecimal() and int(several) > LEAST_PEERS:
            where = seconds.source if seconds.history else None
            run = runs.get(whose, {}).get("run_id")
            key = (loop, several, where, *counters.job(seconds)[:-1], run)
            yield key, processes[whose].get("process_index", ""), seconds, _step_times(seconds, steps)


def _of_loops(evidence: Evidence) -> Iterator[tuple[str | None, Observation, Observation]]:
    """Loops whose steps are measured one by one: their names, seconds and numbers of steps."""
    counts = {(*_whose(each), each.data.get("loop")): each for each in evidence.metric(STEPS)}
    for each in evidence.metric(STEP_SECONDS):
        loop = each.data.get("loop")
        if (*_whose(each), loop) in counts:
            yield loop, each, counts[*_whose(each), loop]


def _of_processes(evidence: Evidence) -> Iterator[tuple[str | None, Observation, Observation]]:
    """Processes with a single loop, by the time that they spent in steps."""
    counts: dict[Key, list[Observation]] = {}
    for each in evidence.metric(ALL_STEPS):
        counts.setdefault(_whose(each), []).append(each)
    for each in evidence.metric(counters.TIME):
        loops = counts.get(_whose(each), [])
        if each.data.get("category") == "step" and len(loops) == 1:
            yield None, each, loops[0]


def _step_times(seconds: Observation, steps: Observation) -> tuple[float, ...]:
    """Seconds of a step: over the whole time, or in each of the last windows of a history, the latest first."""
    if not steps.value or steps.value < LEAST_STEPS or seconds.value is None:
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


def _slow(evidence: Evidence) -> Mapping[int, int]:
    """In how many windows up to now the steps of a process took longer than its peers', by the identity of its sum."""
    jobs: dict[Key, list[tuple[str, Observation, tuple[float, ...]]]] = {}
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
            if len(known) <= LEAST_PEERS:
                break
            usual.append(statistics.median(known))
        for process, seconds, times in members:
            if process == FIRST:
                continue
            pairs = zip(times, usual, strict=False)
            slow = itertools.takewhile(lambda pair: pair[0] > max(SLOWER * pair[1], pair[1] + LEAST_SECONDS), pairs)
            found[id(seconds)] = len(list(slow))
    return found


def _behind(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Of step times, those that are longer than the peers'."""
    slow = _slow(evidence)
    return [
        each for each in signs if each.name not in SECONDS or slow.get(id(each), 0) >= (WINDOWS if each.history else 1)
    ]


def _since(evidence: Evidence, sign: Observation) -> float | None:
    """Of step times with a history: since which window they are longer."""
    if sign.name not in SECONDS or not sign.history:
        return sign.time
    return sign.history[-1][0] - WINDOW * _slow(evidence).get(id(sign), 0)


KNOWN = Knowledge(
    title="One process is slower than the others, and all wait for it",
    impact=SLOW,
    signs=(
        Event("finding:straggler", counted=False),
        # Process 0 counts it. Which process it is about, a metric does not say.
        Metric(FINDINGS, labels=(("finding", "straggler"),), weak=True),
        Alert("JaxStraggler", weak=False),
        Metric(STEP_SECONDS),
        Metric(counters.TIME, labels=(("category", "step"),)),
    ),
    follows=("device_throttled", "gpu_hardware", "input_bound", "recompilation"),
    needs=("event-log", "metrics-file", "target", "prometheus"),
    beside=(STEPS, ALL_STEPS, RUN, counters.PROCESS),
    narrow=_behind,
    since=_since,
    collect="The event log or the address of process 0: its finding names the process that is slow, and its line.",
    fix=(
        "Check that host: throttling, another load, its network and disk; move its work to another host if it repeats."
    ),
    runbook="JaxStraggler",
)
