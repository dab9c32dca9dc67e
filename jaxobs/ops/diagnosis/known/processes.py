"""Functions for the faults between the processes of a job."""

import re
from collections.abc import Mapping, Sequence

from jaxobs.ops.diagnosis import counters, step_times
from jaxobs.ops.diagnosis.evidence import (
    AGAIN,
    BEFORE,
    END,
    EVENT,
    LAST,
    LINE,
    METRIC,
    PROGRESS,
    RAISED,
    SKEW,
    START,
    Evidence,
    Observation,
    is_before,
)
from jaxobs.ops.diagnosis.knowledge import UP, Functions
from jaxobs.ops.diagnosis.known.compilations import ORDINARY

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


_LEAST_REPEATED = 2
"""Times that a process says again that it waits."""


def _hung(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Returns signs behind which a log ends, says again and again that the process waits, or tells of its end by force.

    A process that makes steps behind the sign is not hung, except for the step that it is at.
    """
    ends = [
        each
        for each in evidence.observations
        if (each.kind in (LINE, LAST) and _HUNG.search(each.text))
        or (each.kind == LAST and int(each.data.get(AGAIN, "0")) >= _LEAST_REPEATED and _WAITS.search(each.text))
    ]
    return [
        each
        for each in signs
        if each.kind == LAST
        or (any(_is_behind(end, each) for end in ends)
            and sum(_is_behind(step, each) for step in evidence.of_kind(PROGRESS)) <= 1)
    ]  # fmt: skip


def _is_behind(one: Observation, sign: Observation) -> bool:
    return one.source == sign.source and one.place > sign.place


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


_LOOP_OVER = re.compile(
    r"\b(?i:exhausted|(?:epoch|pass|loop)\b.{0,40}\b(?:finished|done|completed?|over|ended)|"
    r"(?:finished|completed|end of|done with) (?:\w+ ){0,2}(?:data|epoch|shard|pass|batches|loop)|"
    r"(?:out of|no more|ran out of) (?:\w+ )?(?:data|batches|examples|files|samples))\b"
)
"""How a process says that it has left the loop of its steps."""
_LEAST_HELD, _TIMES_HELD = 10.0, 10.0
"""Seconds, and multiple of the longest pause between steps, for which a process of a job makes no step."""


def _left(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Returns the signs if no process raised an error, by which it would have left its program, too.

    The last line of a process is a sign if it left its loop, and another one rests since the same step in it.
    """
    if any(each.name == RAISED for each in evidence.observations):
        return []
    inside = [each for each in evidence.of_kind(LAST) if _is_held(each) and not _left_its_loop(each)]
    return [
        each
        for each in signs
        if each.kind != LAST
        or (_is_held(each) and _left_its_loop(each) and any(_rest_together(each, other) for other in inside))
    ]


def _left_its_loop(last: Observation) -> bool:
    return _LOOP_OVER.search(f"{last.data.get(BEFORE, '')}\n{last.text}") is not None


def _is_held(last: Observation) -> bool:
    rested = _number(last, "since_last_step")
    return _number(last, "steps") >= _LEAST_STEPS and rested > max(_LEAST_HELD, _TIMES_HELD * _number(last, "pause"))


def _rest_together(one: Observation, other: Observation) -> bool:
    """Whether two processes made their last steps at the same time, as far as their clocks tell."""
    if one.time is None or other.time is None or one.process == other.process:
        return False
    own, others = one.time - _number(one, "since_last_step"), other.time - _number(other, "since_last_step")
    return abs(own - others) <= SKEW


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


_LEAST_REST, _TIMES_OF_REST = 900.0, 20.0
"""Seconds, and multiple of the longest rest before, in which a counter does not rise, as in JaxStepsStalled."""
_AT_WORK = 0.5
"""Share of a rest that a process spends in a step or waiting for input: one that has ended its loop does neither."""


def _makes_steps(evidence: Evidence, sign: Observation) -> bool:
    """Whether the steps that a counter counts go on, or the process does something else since the last of them."""
    if sign.name != step_times.ALL_STEPS:
        return False
    resting, longest = counters.rest(sign)
    if resting < max(_LEAST_REST, _TIMES_OF_REST * longest):
        return True
    other_loops = counters.samples(evidence, sign, step_times.ALL_STEPS)
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
    faults = [each for each in evidence.of_kind(LINE) if not ORDINARY.search(each.text)]
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


def _behind(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Returns the step times that are longer than the peers'."""
    slow = step_times.slow_windows(evidence)
    return [
        each
        for each in signs
        if each.name not in step_times.SECONDS or slow.get(id(each), 0) >= (step_times.WINDOWS if each.history else 1)
    ]


def _since_window(evidence: Evidence, sign: Observation) -> float | None:
    """Returns the moment since which step times with a history are longer."""
    if sign.name not in step_times.SECONDS or not sign.history:
        return sign.time
    return sign.history[-1][0] - step_times.WINDOW * step_times.slow_windows(evidence).get(id(sign), 0)


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
