"""Metrics in Prometheus' text format, line by line: a damaged line costs that line."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from prometheus_client.parser import text_string_to_metric_families

from jaxobs.ops.diagnosis.counters import PROCESS as PROCESS
from jaxobs.ops.diagnosis.evidence import METRIC, Observation, Source
from jaxobs.ops.diagnosis.gathering.bounded import Lines, UnreadableError, too_damaged

MOST_SAMPLES = 20_000
_WANTED = ("jax_", "jaxobs_", "accelerator_", "process_", "up", "node_", "container_", "kube_", "DCGM_")


def read(path: str, name: str) -> tuple[list[Observation], Source]:
    """What a metrics file shows."""
    lines = Lines(path)
    damaged: list[int] = []
    try:
        found = list(samples((text for _, text in lines), name, damaged))
    except UnreadableError as error:
        return [], Source(kind="metrics-file", name=name, problem=str(error))
    if not found:
        return [], Source(kind="metrics-file", name=name, problem="it contains no metric in Prometheus' text format")
    found = of_one(found)
    problem = too_damaged(len(damaged), len(damaged) + len(found))
    damage = [f"{len(damaged):,} damaged lines were skipped"] if damaged and problem is None else []
    notes = [*lines.notes, *damage]
    if len(found) >= MOST_SAMPLES:
        notes.append(f"only its first {MOST_SAMPLES:,} samples were read")
    return found, Source(kind="metrics-file", name=name, problem=problem, notes=tuple(notes))


def of_one(found: Sequence[Observation]) -> list[Observation]:
    """The samples of an endpoint, with the process that it says it is."""
    known = {each.data.get("process_index", "") for each in found if each.name == PROCESS}
    index = known.pop() if len(known) == 1 else ""
    if not index.isdecimal():
        return list(found)
    return [each if each.process else replace(each, process=f"process {int(index)}") for each in found]


def samples(
    lines: Iterable[str], source: str, damaged: list[int], moment: float | None = None
) -> Iterator[Observation]:
    """The samples of a text; numbers of damaged lines are added to `damaged`."""
    count = 0
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            (family,) = text_string_to_metric_families(f"{line}\n")
            (sample,) = family.samples
            value = float(sample.value)  # The parser makes integers of any size.
        except Exception:  # whatever the parser makes of foreign text
            damaged.append(number)
            continue
        if not sample.name.startswith(_WANTED) or not math.isfinite(value):
            continue
        count += 1
        if count > MOST_SAMPLES:
            return
        labels = {str(key): str(value)[:200] for key, value in sample.labels.items()}
        yield of_sample(sample.name, labels, value, source, number, moment)


def of_sample(
    name: str, labels: dict[str, str], value: float, source: str, place: int, moment: float | None
) -> Observation:
    """One sample."""
    index = labels.get("process_index") or labels.get("process")
    process = f"process {index}" if index and index.isdecimal() else labels.get("instance", "")
    return Observation(
        kind=METRIC, source=source, place=place, name=name, time=moment, process=process, value=value, data=labels
    )
