"""Diagnoses an incident from whatever it left: event logs, metrics, running processes, a Prometheus, a job's logs.

    evidence = gather(Inputs(logs=("worker-0.log", "worker-1.log"), event_logs=("events.jsonl",)))
    diagnosis = diagnose(evidence)
    diagnosis.verdict, diagnosis.causes, diagnosis.missing

`gather` reads, within bounds of size and time, and never fails for what it reads. `diagnose` is pure: equal evidence
gives an equal diagnosis, byte for byte. Each fault is a table in `known/`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from jaxobs.ops.diagnosis import gathering, judging, nearest
from jaxobs.ops.diagnosis.evidence import Evidence
from jaxobs.ops.diagnosis.gathering import BUDGET
from jaxobs.ops.diagnosis.gathering import TIMEOUT as TIMEOUT
from jaxobs.ops.diagnosis.gathering import WINDOW as WINDOW
from jaxobs.ops.diagnosis.gathering import Inputs as Inputs
from jaxobs.ops.diagnosis.gathering.http import Answers
from jaxobs.ops.diagnosis.gathering.metrics import PROCESS
from jaxobs.ops.diagnosis.gathering.places import File
from jaxobs.ops.diagnosis.gathering.prometheus import metric_names
from jaxobs.ops.diagnosis.knowledge import FINDINGS, Line, Metric
from jaxobs.ops.diagnosis.known import known
from jaxobs.ops.diagnosis.result import NO_FAULT, Diagnosis


def gather(
    inputs: Inputs, *, now: float | None = None, window: float = WINDOW, timeout: float = TIMEOUT,
    budget: float = BUDGET, scope: Mapping[str, str] | None = None,
    answers: Answers | None = None, read_files: Iterable[File] | None = None,
) -> Evidence:  # fmt: skip
    """Everything that the inputs show. What cannot be read is a source with a problem.

    Args:
      now: end of the window of a Prometheus, in seconds since the epoch; the present if None.
      window: seconds of history that a Prometheus is asked for.
      timeout: seconds that one answer of a process or a Prometheus may take.
      budget: seconds that all answers of one Prometheus may take.
      scope: labels, with their values, that the series and alerts of a Prometheus must have: those of one job, say.
      answers: what processes and a Prometheus answer; they are asked if None.
      read_files: files to read in place of those among the inputs.
    """
    signs = [sign for each in known().values() for sign in (*each.signs, *each.refuted_by)]
    lines = list(dict.fromkeys(sign.pattern for sign in signs if isinstance(sign, Line)))
    beside = [name for each in known().values() for name in each.beside]
    shown = [sign.name for sign in signs if isinstance(sign, Metric)]
    names = metric_names(dict.fromkeys([*shown, *beside, FINDINGS, PROCESS]))
    return gathering.collect(
        inputs, lines, names, now=now, window=window, timeout=timeout, budget=budget, scope=scope, answers=answers,
        read_files=read_files,
    )  # fmt: skip


def diagnose(evidence: Evidence) -> Diagnosis:
    """What happened, as far as the evidence shows it: the cause that started it first, and what followed from it."""
    found = judging.judge(evidence, known(), nearest.likely_cause)
    if found.verdict == NO_FAULT:
        return found
    return replace(found, known=nearest.known_incidents(evidence, [each.id for each in found.causes]))
