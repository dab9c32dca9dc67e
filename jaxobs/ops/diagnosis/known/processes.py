"""Functions for the faults between the processes of a job."""

import bisect
import itertools
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence

from jaxobs.findings.fleet.straggler import LEAST_SECONDS, SLOWER
from jaxobs.ops.diagnosis import counters
from jaxobs.ops.diagnosis.evidence import (
    END,
    EVENT,
    LAST,
    LINE,
    METRIC,
    PROGRESS,
    RAISED,
    START,
    Evidence,
    Observation,
    is_before,
)
from jaxobs.ops.diagnosis.knowledge import UP, Functions

_WAITS = re.compile(
    r"backend initialization is taking more than|Connecting to JAX distributed service|"
    r"\b[Ww]aiting to connect\b|\b[Ww]aiting (?:for|on|at)\b(?!.{0,40}(?:request|connection|client|traffic|"
    r"message|work\b|jobs?\b|resources))"
)
"""What a process says before it waits for something that may never come."""
_LEAST_STEPS = 3
_LEAST_PAUSE, _TIMES_OF_PAUSE = 300.0, 10.0
"""No steps for so long, and so many times the longest pause before, are no pause."""


_HUNG = re.compile(
    r"^Timeout \(\d|\bexit(?:ed)?(?: with)?(?: status| code)?:? 124\b|DUE TO TIME LIMIT|^KeyboardInterrupt\b|"
    r"^(?:Terminated|Killed)\b|^(?:multiprocessing\.context|concurrent\.futures\._base)\.TimeoutError\b|"
    r"(?:signal|status|code):? (?:15|143|9|137|SIG(?:TERM|KILL))\b"
)
"""How a log says that a process was ended from outside, or was still at something after its time."""


def _hung(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Returns signs that are a log's last line, or behind which somebody ended the processes."""
    ends = [each for each in evidence.observations if each.kind in (LINE, LAST) and _HUNG.search(each.text)]
    return [
        each for each in signs
        if each.kind == LAST or any(end.source == each.source and end.place > each.place for end in ends)
    ]  # fmt: skip


_GATHERS = (
    r'^\s*File "[^"]*[/\\]jax[/\\]experimental[/\\]multihost_utils\.py", line \d+ in '
    r"(?:process_allgather|broadcast_one_to_all|sync_global_devices|assert_equal)\b"
)
"""A stack by faulthandler of a process in a call that all processes make together; a traceback has a comma more."""
_STACK = r"^(?:Current thread|Thread) 0x[0-9a-f]+ .{0,80}\(most recent call first\):"


def _apart(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Returns the signs, stacks only where one process is in a call of all and the stack of another is not."""
    gathers = [each for each in signs if re.search(_GATHERS, each.text)]
    stacks = [each for each in signs if re.search(_STACK, each.text)]
    inside = {(each.source, each.process) for each in gathers}
    if inside and {(each.source, each.process) for each in stacks} - inside:
        return [each for each in signs if each not in stacks or (each.source, each.process) not in inside]
    return [each for each in signs if each not in gathers and each not in stacks]


def _left(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Returns the signs if no process raised an error, by which it would have left its program, too."""
    return [] if any(each.name == RAISED for each in evidence.observations) else list(signs)


def _waits(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Returns signs behind which a process says nothing, unless others make steps: one that waits for them could not.

    Signs of processes that continue to log, but not their steps, are among them.
    """
    return [
        each
        for each in signs
        if each.kind != LAST
        or ((_WAITS.search(each.text) or _has_stalled(evidence, each)) and not _others_go_on(evidence, each))
    ]


def _has_stalled(evidence: Evidence, last: Observation) -> bool:
    if "since_last_step" not in last.data or last.data["said_last"] != "other":
        return False
    ended = any((each.source, each.process) == (last.source, last.process) for each in evidence.of_kind(END))
    pause = max(_LEAST_PAUSE, _TIMES_OF_PAUSE * float(last.data["pause"]))
    return not ended and float(last.data["steps"]) >= _LEAST_STEPS and float(last.data["since_last_step"]) > pause


_ALL_STEPS = "jax_steps_total"
_LEAST_REST, _TIMES_OF_REST = 900.0, 20.0
"""Seconds, and multiple of the longest rest before, in which a counter does not rise, as in JaxStepsStalled."""
_AT_WORK = 0.5
"""Share of a rest that a process spends in a step or waiting for input: one that has ended its loop does neither."""


def _makes_steps(evidence: Evidence, sign: Observation) -> bool:
    """Whether the steps that a counter counts go on, or the process does something else since the last of them."""
    if sign.name != _ALL_STEPS:
        return False
    resting, longest = counters.rest(sign)
    if resting < max(_LEAST_REST, _TIMES_OF_REST * longest):
        return True
    other_loops = counters.samples(evidence, sign, _ALL_STEPS)
    if any(counters.rest(each)[0] < _LEAST_REST for each in other_loops if each is not sign):
        return True
    working = sum(
        _grown_since(each, sign.history[-1][0] - resting)
        for each in counters.samples(evidence, sign, counters.TIME, category="step|input_wait")
    )
    return working < _AT_WORK * resting


def _grown_since(counter: Observation, moment: float) -> float:
    values = [value for at, value in counter.history if at >= moment]
    return values[-1] - values[0] if values else 0.0


def _others_go_on(evidence: Evidence, last: Observation) -> bool:
    steps = [each for each in evidence.of_kind(PROGRESS) if is_before(each, last) is not True]
    return any(each.time is None or last.time is None or each.time >= last.time for each in steps)


_LEAST_SILENCE = 60.0
_TIMES_OF_SILENCE = 5.0
"""A pause is a silence if it is so many times as long as any before, and so long."""
_LEAST_AGE, _TIMES_OF_AGE = 900.0, 30.0
"""Seconds, and multiple of the longest pause before, for which nobody has written a file."""
_ZONES = 900.0
"""Seconds by which the clocks of time zones differ, and multiples of it."""


def _stopped(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Returns the last signs of processes that stopped between their steps, without an end or an error."""
    ended = {(each.source, each.process) for each in evidence.of_kind(END)}
    faults = list(evidence.of_kind(LINE))
    steps = {(each.source, each.process): each.place for each in evidence.of_kind(PROGRESS)}
    broken = {
        (each.source, each.process) for each in faults if each.place > steps.get((each.source, each.process), 0)
    }  # fmt: skip
    gone = [each for each in signs if each.kind == METRIC and _is_missed_by_its_peers(evidence, each)]
    return gone + [
        last
        for last in signs
        if last.kind == LAST
        and (last.source, last.process) not in ended | broken
        and (
            _is_missed(evidence, last, faults)
            or _is_left_behind(evidence, last)
            or _was_given_up(last)
            or last.data.get("said_last") == "prompt"
        )
    ]


def _is_missed_by_its_peers(evidence: Evidence, down: Observation) -> bool:
    """Whether a process of a job of several has stopped answering Prometheus, and others of that job still answer.

    Replicas of a service come and go one by one, and targets of pods that ended may stay.
    """
    return counters.has_just_become(evidence, down) and _is_down(down) and bool(_peers(evidence, down))


def _is_down(target: Observation) -> bool:
    """Whether a target did not answer twice in a row."""
    return len(target.history) >= 2 and target.history[-2][1] == 0


def _peers(evidence: Evidence, down: Observation) -> set[str]:
    """Returns the processes that still answer, by address and number, if the target that does not has such peers."""
    job = {
        each.data.get("instance", ""): each.process
        for each in evidence.metric(counters.PROCESS)
        if each.source == down.source
        and each.data.get("job") == down.data.get("job")
        and each.data.get("process_count", "").isdecimal()
        and int(each.data["process_count"]) > 1
    }
    if down.data.get("instance") not in job:
        return set()
    answering = [each for each in evidence.metric(UP) if each.source == down.source and each.value]
    own = [each for each in answering if each.data.get("instance") in job]
    return {name for each in own for name in (each.process, job[each.data["instance"]])}


def _is_missed(evidence: Evidence, last: Observation, faults: Sequence[Observation]) -> bool:
    """Whether its last line comes long before a line of another process that shows a fault."""
    steps = [each.time for each in evidence.of_kind(PROGRESS) if each.process == last.process and each.time is not None]
    if last.time is None or len(steps) < 2 or last.process in {each.process for each in evidence.of_kind(END)}:
        return False
    usual = (max(steps) - min(steps)) / (len(steps) - 1)
    others = [each for each in faults if each.process != last.process and not _began_after(evidence, each, last)]
    waited = max((each.time - last.time for each in others if each.time is not None), default=0.0)
    return waited > max(_LEAST_SILENCE, _TIMES_OF_SILENCE * usual)


def _began_after(evidence: Evidence, other: Observation, last: Observation) -> bool:
    """Whether the log of another process begins behind the last line of this one: later, or by a wrong clock."""
    begun = [
        each.time
        for each in evidence.of_kind(PROGRESS, START)
        if (each.source, each.process) == (other.source, other.process) and each.time is not None
    ]
    return bool(begun) and min(begun) > (last.time or 0.0)


def _is_left_behind(evidence: Evidence, last: Observation) -> bool:
    """Whether another process of the same time goes on making steps long after it."""
    if last.time is None or _number(last, "steps") < _LEAST_STEPS:
        return False
    return any(
        (other.source, other.process) != (last.source, last.process)
        and _number(other, "steps") >= _LEAST_STEPS
        and other.time is not None
        and "since_last_step" in other.data
        and other.time - _number(other, "since_first_step") < last.time
        and other.time - _number(other, "since_last_step") - last.time
        > max(_LEAST_SILENCE, _TIMES_OF_SILENCE * _number(last, "pause"))
        for other in evidence.of_kind(LAST)
    )


def _was_given_up(last: Observation) -> bool:
    """Whether its last line is a step with which its file was written last, and that is long ago.

    Part of a log that somebody copied is written at another time than that of its last line.
    """
    if "age" not in last.data or last.data["said_last"] != "step":
        return False
    apart = _number(last, "written_after") % _ZONES
    is_its_own = min(apart, _ZONES - apart) < 2.0
    long = max(_LEAST_AGE, _TIMES_OF_AGE * _number(last, "pause"))
    return is_its_own and _number(last, "steps") >= _LEAST_STEPS and _number(last, "age") > long


def _number(last: Observation, name: str) -> float:
    return float(last.data.get(name, 0.0))


def _outside(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """A process inside JAX waits for another one: for one that no longer answers, if there is one."""
    waiting = {
        each.process
        for each in evidence.of_kind(EVENT)
        if each.name == "finding:stuck" and each.data.get("inside_jax") == "True"
    }
    return [
        each
        for each in signs
        if each.data.get("inside_jax") == "False"
        or (each.kind == METRIC and _is_down(each) and waiting.intersection(_peers(evidence, each)))
    ]


_STEPS, _STEP_SECONDS = "jax_step_seconds_count", "jax_step_seconds_sum"
_SECONDS = (_STEP_SECONDS, counters.TIME)
_RUN = "jax_run_info"
_LEAST_PEERS = 2
"""Of two processes, either may be the unusual one."""
_LEAST_MEASURED = 50
"""Over fewer, the first ones count too much."""
_FIRST = "0"
"""Process 0 evaluates and saves for all: a mean does not tell its pauses from slow steps, and the finding does."""
_WINDOWS, _WINDOW = 3, 600.0
"""Windows in a row, at the end of a history, and the seconds of each."""
_Key = tuple[str | None, ...]


def _whose(sample: Observation) -> _Key:
    """By its address, where there is one: the sample that has the number of a process is named by that."""
    return sample.source, sample.data.get("instance", sample.process), *counters.job(sample)


def _loops(evidence: Evidence) -> Iterator[tuple[_Key, str, Observation, tuple[float, ...]]]:
    """Each loop of a process of several: what its job has in common, its number, its seconds and its step times."""
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
    """Loops whose steps are measured one by one: their names, seconds and numbers of steps."""
    counts = {(*_whose(each), each.data.get("loop")): each for each in evidence.metric(_STEPS)}
    for each in evidence.metric(_STEP_SECONDS):
        loop = each.data.get("loop")
        if (*_whose(each), loop) in counts:
            yield loop, each, counts[*_whose(each), loop]


def _of_processes(evidence: Evidence) -> Iterator[tuple[str | None, Observation, Observation]]:
    """Processes with a single loop, by the time that they spent in steps."""
    counts: dict[_Key, list[Observation]] = {}
    for each in evidence.metric(_ALL_STEPS):
        counts.setdefault(_whose(each), []).append(each)
    for each in evidence.metric(counters.TIME):
        loops = counts.get(_whose(each), [])
        if each.data.get("category") == "step" and len(loops) == 1:
            yield None, each, loops[0]


def _step_times(seconds: Observation, steps: Observation) -> tuple[float, ...]:
    """Seconds of a step: over the whole time, or in each of the last windows of a history, the latest first."""
    if not steps.value or steps.value < _LEAST_MEASURED or seconds.value is None:
        return ()
    if not seconds.history:
        return (seconds.value / steps.value,)
    end = seconds.history[-1][0]
    found = []
    for number in range(int((end - seconds.history[0][0]) // _WINDOW)):
        taken, made = (_grown(each, end - (number + 1) * _WINDOW, end - number * _WINDOW) for each in (seconds, steps))
        if taken <= 0 or made <= 0:
            break
        found.append(taken / made)
    return tuple(found) if len(found) >= _WINDOWS else ()


def _grown(counter: Observation, begin: float, end: float) -> float:
    times = [at for at, _ in counter.history]
    first, last = bisect.bisect_left(times, begin), bisect.bisect_right(times, end) - 1
    return counter.history[last][1] - counter.history[first][1] if first < last else 0.0


def _slow_windows(evidence: Evidence) -> Mapping[int, int]:
    """In how many windows up to now the steps of a process took longer than its peers', by the identity of its sum."""
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


def _behind(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Returns the step times that are longer than the peers'."""
    slow = _slow_windows(evidence)
    return [
        each
        for each in signs
        if each.name not in _SECONDS or slow.get(id(each), 0) >= (_WINDOWS if each.history else 1)
    ]


def _since_window(evidence: Evidence, sign: Observation) -> float | None:
    """Returns the moment since which step times with a history are longer."""
    if sign.name not in _SECONDS or not sign.history:
        return sign.time
    return sign.history[-1][0] - _WINDOW * _slow_windows(evidence).get(id(sign), 0)


FUNCTIONS: Mapping[str, Functions] = {
    "fork_deadlock": {"narrow": _hung},
    "left_early": {"narrow": _left},
    "no_progress": {"narrow": _waits, "ordinary": _makes_steps},
    "process_silent": {"narrow": _stopped},
    "programs_diverge": {"narrow": _apart},
    "process_stuck": {"narrow": _outside},
    "straggler": {"narrow": _behind, "since": _since_window},
}
PARTS: Mapping[str, str] = {"gathers": _GATHERS, "stack": _STACK}
