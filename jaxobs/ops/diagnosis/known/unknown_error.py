"""The last line of a log is an error that no diagnosis knows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxobs.ops.diagnosis.evidence import END, LINE, Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import ANY_END, ENDED, SYMPTOM, Knowledge, Silence

_ERROR = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\b(?::|$)|Traceback \(most recent call last\)|^(?:FATAL|"
    r"fatal|panic)\b|"
    r"[Ee]xit(?:ed)?(?: with)?(?: exit)?[ -]?(?:[Cc]ode|status)[:= ]*\(?[1-9]\d*\b|"
    r"terminated with (?:exit )?code .?[1-9]|^Error from server \(|returned non-zero exit status|"
    r"^(?:srun|slurmstepd|mpirun|docker|kubelet|ORTE)\b.{0,20}(?:[Ee]rror|fatal)\b|"
    r"\b[Cc]rashed\b|\bWarning\s+(?:\w*Failed\w*|\w+Error|BackOff)\s"
)
"""An exception without its traceback, a traceback that is cut off, an end that is no success."""

_HARMLESS = re.compile(
    r"Delay kernel timed out|Unable to register cu\w+ factory|computation placer already registered|"
    r"Constant folding an instruction|Very slow compile|^\**$|This isn't necessarily a bug|"
    r"The operation took \d|not a git repository|omputed? .{0,40}sub-optimal|PredictCost|[Ss]uccessful NUMA node read|"
    r"\d%\|.{0,200}\d/\d+ \[\d+:\d\d"
)
"""What is said as an error and is none."""


def _last_words(evidence: Evidence, signs: Sequence[Observation]) -> list[Observation]:
    """Errors that nothing knows, behind which a process says nothing more."""
    known = {(each.source, each.place) for each in evidence.of_kind(LINE)}
    ended = {(each.source, each.process) for each in evidence.of_kind(END)}
    return [
        each
        for each in signs
        if (each.level in ("E", "F") or _ERROR.search(each.text) or _ended_in_trouble(each, known))
        and not _HARMLESS.search(each.text)
        and (each.source, each.place) not in known
        and (each.source, each.process) not in ended
    ]


def _ended_in_trouble(last: Observation, known: set[tuple[str, int]]) -> bool:
    """Whether an error comes close before the last line, which may tell what to do about it."""
    if last.level in ("I", "D"):
        return False
    trouble = False
    for place, _, text in (each.partition(" ") for each in last.data.get("before", "").split("\n")):
        if _ERROR.search(text) and not _HARMLESS.search(text):
            # A known exception also explains the traceback above it.
            trouble = (last.source, int(place)) not in known
    return trouble


KNOWN = Knowledge(
    title="A log ends with an error that no diagnosis knows",
    impact=ENDED,
    role=SYMPTOM,
    general=4,
    signs=(Silence(),),
    narrow=_last_words,
    follows=(
        ANY_END,
        "killed",
        "native_crash",
        "peer_lost",
        "collective_stuck",
        "program_error",
        "runtime_error",
        "nccl_failure",
        "other_failed",
        "process_silent",
        "failing_function",
    ),
    fix="Read that line, and those above it.",
    collect=("What the process did after its last line, which is an error: its exit code, and a log that goes on."),
    runbook="JaxFunctionErrors",
)
