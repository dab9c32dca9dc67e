"""A process that logged its steps stopped without a word: others report a fault, or go on without it."""

from __future__ import annotations

from collections.abc import Sequence

from jaxobs.ops.diagnosis import counters
from jaxobs.ops.diagnosis.counters import PROCESS
from jaxobs.ops.diagnosis.evidence import END, LAST, LINE, METRIC, PROGRESS, START, Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import ENDED, SYMPTOM, UP, Down, Knowledge, Silence

LEAST_SECONDS = 60.0
TIMES = 5.0
"""A pause is a silence if it is so many times as long as any before, and so long."""
LEAST_STEPS = 3
LEAST_AGE, TIMES_OF_AGE = 900.0, 30.0
"""The same of a file that nobody writes any more."""
ZONES = 900.0
"""Seconds by which the clocks of time zones differ, and multiples of it."""


def _stopped(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Those that stopped between their steps, and no end and no error is told of them."""
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
    if not counters.has_just_become(evidence, down) or len(down.history) < 2 or down.history[-2][1] != 0:
        return False
    job = {
        (each.data.get("instance", ""), each.data.get("process_count", ""))
        for each in evidence.metric(PROCESS)
        if each.source == down.source and each.data.get("job") == down.data.get("job")
    }
    several = {instance for instance, count in job if count.isdecimal() and int(count) > 1}
    peers = [
        each
        for each in evidence.metric(UP)
        if each.source == down.source and each.value and each.data.get("instance") in several
    ]
    return down.data.get("instance") in several and bool(peers)


def _is_missed(evidence: Evidence, last: Observation, faults: Sequence[Observation]) -> bool:
    """Whether its last line comes long before a line of another process that shows a fault."""
    steps = [each.time for each in evidence.of_kind(PROGRESS) if each.process == last.process and each.time is not None]
    if last.time is None or len(steps) < 2 or last.process in {each.process for each in evidence.of_kind(END)}:
        return False
    usual = (max(steps) - min(steps)) / (len(steps) - 1)
    others = [each for each in faults if each.process != last.process and not _began_after(evidence, each, last)]
    waited = max((each.time - last.time for each in others if each.time is not None), default=0.0)
    return waited > max(LEAST_SECONDS, TIMES * usual)


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
    if last.time is None or _number(last, "steps") < LEAST_STEPS:
        return False
    return any(
        (other.source, other.process) != (last.source, last.process)
        and _number(other, "steps") >= LEAST_STEPS
        and other.time is not None
        and "since_last_step" in other.data
        and other.time - _number(other, "since_first_step") < last.time
        and other.time - _number(other, "since_last_step") - last.time
        > max(LEAST_SECONDS, TIMES * _number(last, "pause"))
        for other in evidence.of_kind(LAST)
    )


def _was_given_up(last: Observation) -> bool:
    """Whether its last line is a step with which its file was written last, and that is long ago.

    Part of a log that somebody copied is written at another time than that of its last line.
    """
    if "age" not in last.data or last.data["said_last"] != "step":
        return False
    apart = _number(last, "written_after") % ZONES
    is_its_own = min(apart, ZONES - apart) < 2.0
    long = max(LEAST_AGE, TIMES_OF_AGE * _number(last, "pause"))
    return is_its_own and _number(last, "steps") >= LEAST_STEPS and _number(last, "age") > long


def _number(last: Observation, name: str) -> float:
    return float(last.data.get(name, 0.0))


KNOWN = Knowledge(
    title="A process stopped without a word",
    impact=ENDED,
    role=SYMPTOM,
    signs=(Silence(), Down()),
    narrow=_stopped,
    follows=(
        "killed",
        "host_out_of_memory",
        "preemption",
        "time_limit",
        "gpu_hardware",
        "network_fault",
        "process_stuck",
    ),
    fix="Find out what became of it.",
    collect=(
        "What became of the process that stopped logging: its exit code, the state of its pod, "
        "and the kernel's messages of its host."
    ),
    runbook="JaxTargetDown",
    needs=("log", "event-log", "prometheus"),
    beside=(UP, PROCESS),
)
