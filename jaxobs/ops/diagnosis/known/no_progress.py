"""A process makes no progress, and nothing says why."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxobs.ops.diagnosis import counters
from jaxobs.ops.diagnosis.evidence import END, LAST, PROGRESS, Evidence, Observation, is_before
from jaxobs.ops.diagnosis.knowledge import ANY_END, STUCK, SYMPTOM, Knowledge, Line, Metric, Silence

_WAITS = re.compile(
    r"backend initialization is taking more than|Connecting to JAX distributed service|"
    r"\b[Ww]aiting to connect\b|\b[Ww]aiting (?:for|on|at)\b(?!.{0,40}(?:request|connection|client|traffic|"
    r"message|work\b|jobs?\b|resources))"
)
"""What a process says before it waits for something that may never come."""


LEAST_STEPS = 3
LEAST_SECONDS, TIMES = 300.0, 10.0
"""No steps for so long, and so many times the longest pause before, are no pause."""


def _waits(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Those that say nothing after it, unless others make steps: a process that waits for them could not.

    And those that go on logging, but not their steps.
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
    pause = max(LEAST_SECONDS, TIMES * float(last.data["pause"]))
    return not ended and float(last.data["steps"]) >= LEAST_STEPS and float(last.data["since_last_step"]) > pause


_STEPS = "jax_steps_total"
_LEAST_REST, _TIMES_OF_REST = 900.0, 20.0
"""The same of a counter, which shows rests no better than it is scraped. As in JaxStepsStalled."""
_AT_WORK = 0.5
"""Share of a rest that a process spends in a step or waiting for input: one that has ended its loop does neither."""


def _makes_steps(evidence: Evidence, sign: Observation) -> bool:
    """Whether the steps that a counter counts go on, or the process does something else since the last of them."""
    if sign.name != _STEPS:
        return False
    resting, longest = counters.rest(sign)
    if resting < max(_LEAST_REST, _TIMES_OF_REST * longest):
        return True
    other_loops = counters.samples(evidence, sign, _STEPS)
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


KNOWN = Knowledge(
    title="A process makes no progress",
    impact=STUCK,
    role=SYMPTOM,
    general=3,
    signs=(
        Silence(),
        Metric(_STEPS),
        Line(r"task \S+:\d+ blocked for more than \d+ seconds|soft lockup - CPU", info=True),
        Line(r"^Timeout \(\d+:\d\d:\d\d(?:\.\d+)?\)!|[Ww]atchdog.{0,40}time(?:out|d out)|WORKER TIMEOUT"),
        Line(r"failed liveness probe, will be restarted", info=True),
        Line(
            r"[Nn]o (?:progress|steps?|heartbeats?) (?:\w+ ){0,3}(?:for|in|since) (?:the last )?\d+|"
            r"[Nn]o heartbeats? .{1,80}\(\d+ ?s|lack of heartbeats|"
            r"[Hh]ang detected|appears to be (?:hung|stuck)",
        ),
    ),
    narrow=_waits,
    ordinary=_makes_steps,
    beside=(counters.TIME,),
    follows=(
        ANY_END,
        "collective_stuck",
        "compile_stuck",
        "coordinator_unreachable",
        "killed",
        "native_crash",
        "nccl_failure",
        "peer_lost",
        "process_silent",
        "process_stuck",
        "programs_diverge",
        "storage_unavailable",
        "straggler",
    ),
    needs=("log", "event-log", "prometheus"),
    fix="Find out what it waits for.",
    collect=(
        "The logs of all hosts from their first lines, whether the program was started on each of them, and the "
        "stacks of the one that waits (`py-spy dump --pid PID`)."
    ),
    runbook="JaxProcessStuck",
)
