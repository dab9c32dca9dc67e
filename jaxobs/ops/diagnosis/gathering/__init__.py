"""Reads whatever there is about an incident into `Evidence`: one module for each kind of source."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from jaxobs.ops.diagnosis.evidence import ALERT, EVENT, METRIC, Evidence, Observation, Source
from jaxobs.ops.diagnosis.gathering import event_logs, logs, metrics, prometheus, targets
from jaxobs.ops.diagnosis.gathering.bounded import shares
from jaxobs.ops.diagnosis.gathering.http import Answers, Asked
from jaxobs.ops.diagnosis.gathering.instances import processes
from jaxobs.ops.diagnosis.gathering.log_times import nearest
from jaxobs.ops.diagnosis.gathering.places import EVENT_LOG, LOG, METRICS_FILE, File, files
from jaxobs.ops.diagnosis.gathering.places import Inputs as Inputs
from jaxobs.ops.diagnosis.gathering.whose import OF_LOGS, adopted

WINDOW = 3600.0
"""Seconds of history that a Prometheus is asked for."""
TIMEOUT = 5.0
"""Seconds for one answer."""
BUDGET = 30.0
"""Seconds for all answers of one Prometheus."""


def collect(
    inputs: Inputs, signs: Sequence[str], names: Sequence[str], *, now: float | None = None,
    window: float = WINDOW, timeout: float = TIMEOUT, budget: float = BUDGET, scope: Mapping[str, str] | None = None,
    answers: Answers | None = None, read_files: Iterable[File] | None = None,
) -> Evidence:  # fmt: skip
    """Everything that the inputs show. What cannot be read is a source with a problem, never an error.

    Args:
      signs: regular expressions of lines that show something.
      names: metrics that show something.
      now: end of the window of a Prometheus, in seconds since the epoch; the present if None.
      budget: seconds for all answers of one Prometheus.
      scope: labels that the series and alerts of a Prometheus must have; any if None.
      answers: what processes and a Prometheus answer; they are asked if None.
      read_files: files to read in place of those among the inputs.
    """
    found: list[Observation] = []
    sources: list[Source] = []

    def take(read: tuple[list[Observation], Source]) -> None:
        found.extend(read[0])
        sources.append(read[1])

    asked = Asked() if answers is None else answers
    moment = time.time() if now is None else now
    read = list(files(inputs) if read_files is None else read_files)
    for file, most in zip(read, shares([each.path if each.kind == LOG else "" for each in read]), strict=True):
        take(_read(file, signs, moment, most))
    for url in dict.fromkeys(inputs.targets):
        take(targets.read(url, timeout, asked))
    for url in dict.fromkeys(inputs.prometheus):
        take(
            prometheus.read(
                url, names, now=moment, window=window, timeout=timeout, budget=budget, answers=asked, scope=scope
            )
        )
    named = targets.told_apart(_joined(_numbered(_dated(found))), sources)
    return Evidence.of(adopted(named, sources), sources)


def _read(file: File, signs: Sequence[str], now: float, most: int) -> tuple[list[Observation], Source]:
    if file.problem is not None:
        return [], Source(kind=file.kind, name=file.name, problem=file.problem)
    if file.kind == EVENT_LOG:
        found, source = event_logs.read(file.path, file.name)
    elif file.kind == METRICS_FILE:
        found, source = metrics.read(file.path, file.name)
    elif event_logs.is_one(file.path):
        found, source = event_logs.read(file.path, file.name)
    else:
        found, source = logs.read(file.path, file.name, signs, file.year, modified=file.modified, now=now, most=most)
    return found, replace(source, notes=(*source.notes, *file.notes))


def _numbered(found: Sequence[Observation]) -> list[Observation]:
    """What logs call by the names of pods and hosts gets the numbers of the processes, where the names show these."""
    called = processes(
        each.process for each in found if each.kind in OF_LOGS and not each.process.startswith("process ")
    )  # fmt: skip
    return [replace(each, process=called.get(each.process, each.process)) for each in found]


def _joined(found: Sequence[Observation]) -> list[Observation]:
    """What a Prometheus calls by addresses gets the numbers of processes where other sources have these.

    The addresses of one job only: in several, numbers come back.
    """
    if not any(each.kind in (*OF_LOGS, EVENT) and each.process.startswith("process ") for each in found):
        return list(found)
    numbers: dict[tuple[str, str], set[str]] = {}
    for each in found:
        if each.kind == METRIC and each.name == metrics.PROCESS and each.data.get("process_index", "").isdecimal():
            numbers.setdefault((each.source, each.data.get("instance", "")), set()).add(each.data["process_index"])
    single = {key: next(iter(one)) for key, one in numbers.items() if len(one) == 1}
    for source in {source for source, _ in numbers}:
        own = [number for (of, _), number in single.items() if of == source]
        if len(set(own)) < len([None for of, _ in numbers if of == source]):
            single = {key: number for key, number in single.items() if key[0] != source}

    def named(one: Observation) -> Observation:
        number = single.get((one.source, one.process)) if one.kind in (METRIC, ALERT) and one.process else None
        return one if number is None else replace(one, process=f"process {number}")

    return [named(each) for each in found]


def _dated(found: Sequence[Observation]) -> list[Observation]:
    """Times without a year get the one that brings them nearest to the earliest time that has one."""
    known = min((each.time for each in found if each.time is not None and "yearless" not in each.data), default=None)
    if known is None:
        return list(found)
    return [
        replace(each, time=nearest(each.time, known)) if each.time is not None and "yearless" in each.data else each
        for each in found
    ]
