"""A running process: its events, and its metrics, from its endpoint."""

from collections.abc import Sequence
from dataclasses import replace

from jaxobs.base.errors import JaxobsError
from jaxobs.facts.events import Event
from jaxobs.facts.process import Manifest
from jaxobs.ops.diagnosis.counters import STARTED
from jaxobs.ops.diagnosis.evidence import EVENT, INTERNAL, LAST, METRIC, Observation, Source
from jaxobs.ops.diagnosis.gathering import event_logs, metrics
from jaxobs.ops.diagnosis.gathering.http import Answers, NoAnswerError, shown
from jaxobs.ops.diagnosis.knowledge import FINDINGS
from jaxobs.views import client

_LASTS = 600.0
"""Seconds after the latest failure of jaxobs itself from which on it is over."""


def read(url: str, timeout: float, answers: Answers) -> tuple[list[Observation], Source]:
    """What a process says of itself."""
    name = shown(url)
    try:
        base = client.endpoint_url(url)
        snapshot = client.fetch_snapshot(base, timeout=timeout, get=answers.of_process)
        collected: list[Event] = [
            each for kind in event_logs.KINDS if kind is not Manifest
            for each in client.fetch_events(base, kind=kind.kind, timeout=timeout, get=answers.of_process).events
        ]  # fmt: skip
    except JaxobsError as error:
        return [], Source(kind="target", name=name, problem=shown(str(error)))
    numbered = [(each.sequence, each) for each in sorted(collected, key=lambda each: each.sequence)]
    told = event_logs.of_process(numbered, name, snapshot.process.process_index)
    found = [each for each in told if each.kind != LAST]  # It runs.
    found += [
        Observation(
            kind=EVENT, source=name, name=f"{INTERNAL}{where}", time=error.since, text=error.text,
            process=f"process {snapshot.process.process_index}",
        )
        for where, error in snapshot.observer.latest_errors.items()
        if error.latest is None or snapshot.time - error.latest < _LASTS
    ]  # fmt: skip
    notes = []
    try:
        text = answers.of_server(f"{base}/metrics", timeout).decode("utf-8", "replace")
        own = metrics.of_one(list(metrics.samples(text.split("\n"), name, [], snapshot.time)))
        found += [each for each in own if each.name != FINDINGS]  # Its events say more.
    except NoAnswerError as error:
        notes.append(f"/metrics: {error}")
    return found, Source(kind="target", name=name, notes=tuple(notes))


EQUAL_SECONDS = 0.01
"""Two processes that started within that are one: the time is printed in full."""


def told_apart(found: Sequence[Observation], sources: Sequence[Source]) -> list[Observation]:
    """Each process has the same name from its endpoint and in a Prometheus, and processes of several jobs have several.

    A number is a process's only in its job. Where a Prometheus calls it by its address, for it knows several jobs, the
    endpoint does so too; where two endpoints have the same number, they are called by their own addresses.
    """
    targets = {each.name for each in sources if each.kind == "target"}
    started = [each for each in found if each.kind == METRIC and each.name == STARTED and each.value is not None]
    own = {each.source: each for each in started if each.source in targets}
    names: dict[str, str] = {}
    for source, start in own.items():
        others = {each.process for each in started if each.source not in targets and _is_same(each, start)}
        rivals = [each for each in own.values() if each.process == start.process and not _is_same(each, start)]
        if len(others) == 1 and "" not in others:
            names[source] = others.pop()
        elif rivals:
            names[source] = source
    return [
        replace(each, process=names[each.source])
        if each.source in names and each.process == own[each.source].process else each
        for each in found
    ]  # fmt: skip


def _is_same(one: Observation, other: Observation) -> bool:
    return abs((one.value or 0.0) - (other.value or 0.0)) < EQUAL_SECONDS
