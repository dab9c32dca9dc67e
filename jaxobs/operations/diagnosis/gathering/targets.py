"""A running process: its events, and its metrics, from its endpoint."""

from __future__ import annotations

from jaxobs.base.errors import JaxobsError
from jaxobs.facts.events import Event
from jaxobs.facts.process import Manifest
from jaxobs.operations.diagnosis.evidence import LAST, Observation, Source
from jaxobs.operations.diagnosis.gathering import event_logs, metrics
from jaxobs.operations.diagnosis.gathering.answers import Answers, shown
from jaxobs.operations.diagnosis.gathering.http import NoAnswerError
from jaxobs.operations.diagnosis.knowledge import FINDINGS
from jaxobs.views import client


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
    notes = []
    try:
        text = answers.of_server(f"{base}/metrics", timeout).decode("utf-8", "replace")
        own = metrics.of_one(list(metrics.samples(text.split("\n"), name, [], snapshot.time)))
        found += [each for each in own if each.name != FINDINGS]  # Its events say more.
    except NoAnswerError as error:
        notes.append(f"/metrics: {error}")
    return found, Source(kind="target", name=name, notes=tuple(notes))
