"""The events of jaxobs, from an event log or from a running process: what is wrong in it, and how far it came."""

import json
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TypeGuard

from jaxobs.base.json_lines import Damage
from jaxobs.facts.compilations import Compilation
from jaxobs.facts.errors import Error, OutOfMemory
from jaxobs.facts.events import Event
from jaxobs.facts.findings import Finding
from jaxobs.facts.numbers import NonFinite
from jaxobs.facts.process import Exit, Manifest
from jaxobs.facts.steps import Step
from jaxobs.facts.verdicts import VerdictFinding
from jaxobs.findings import verdict
from jaxobs.findings.patterns import Patterns
from jaxobs.ops.diagnosis import counters
from jaxobs.ops.diagnosis.evidence import (
    END,
    EVENT,
    LAST,
    METRIC,
    MOST_TEXT,
    NO_EXIT,
    PROGRESS,
    START,
    Observation,
    Source,
)
from jaxobs.ops.diagnosis.gathering.bounded import UnreadableError, regular_size, too_damaged
from jaxobs.ops.diagnosis.gathering.paces import Pace
from jaxobs.views import story
from jaxobs.views.story.log import events

KINDS: tuple[type[Event], ...] = (Manifest, Finding, OutOfMemory, NonFinite, Error, Exit, Step, Compilation)
_MOST_FIRST = 2**16
_MOST_STEPS = 500
_KEPT = 200
"""Findings, errors and values of one process: the first ones."""
_UNSAVED = ("error", "disabled")
"""Why a program is not in the persistent cache, if that may be a fault."""
_MOST_UNSAVED = 20
_MOST_IDLE = 1e7
"""Seconds that a process is believed to be stuck."""


def is_one(path: str) -> bool:
    """Whether a file that was given as a job's log is an event log of jaxobs."""
    try:
        regular_size(path)
        with open(path, "rb") as file:
            body = json.loads(file.readline(_MOST_FIRST))
    except (UnreadableError, OSError, ValueError, RecursionError):
        return False
    return isinstance(body, dict) and {"time", "event", "process_index", "pid"} <= body.keys()


def read(path: str, name: str) -> tuple[list[Observation], Source]:
    """What an event log shows."""
    damage = Damage()
    found: dict[int, list[tuple[int, Event]]] = {}
    whose: dict[int, story.ProcessEvents] = {}
    notes, count = [], -1
    try:
        regular_size(path)
        for count, (process, event) in enumerate(events(path, damage, KINDS)):
            whose[id(process)] = process
            if event is not None:
                found.setdefault(id(process), []).append((count, event))
    except UnreadableError as error:
        return [], Source(kind="event-log", name=name, problem=str(error))
    except story.EventLogError as error:
        return [], Source(kind="event-log", name=name, problem=str(error).replace(path, name))
    observations = [
        each for key, process in whose.items() for each in of_process(found.get(key, []), name, process.process_index)
    ]
    problem = too_damaged(damage.count, count + 1 + damage.count)
    if damage.count and problem is None:
        notes.append(f"{damage.count:,} damaged lines were skipped")
    notes += [f"left out {what}: {number:,}" for what, number in damage.left_out.items()]
    return observations, Source(kind="event-log", name=name, problem=problem, notes=tuple(notes))


def of_process(numbered: Iterable[tuple[int, Event]], source: str, index: int) -> Iterator[Observation]:
    """What the events of one process show, each with its number in the source."""
    process = f"process {index}"
    findings: dict[str, tuple[int, Finding]] = {}
    begun = ended = 0.0
    kept = steps = unsaved = 0
    numbered = list(numbered)
    recovered = _recovered(event for _, event in numbered)
    survived = _survived([event for _, event in numbered])
    patterns, pace, end = Patterns(), Pace(), None
    for place, event in numbered:
        begun = min(begun or event.time, event.time)
        ended = max(ended, event.time)
        if isinstance(event, Finding):
            # One that grows comes again: its place is that of the first, what it says that of the last.
            findings[event.id] = findings.get(event.id, (place, event))[0], event
        elif isinstance(event, Step):
            steps += 1
            pace.step("", event.time)
            if steps <= _MOST_STEPS or event.slow:
                yield Observation(
                    kind=PROGRESS, source=source, place=place, name=event.loop, time=event.time, process=process,
                    value=float(event.last or steps), data={"typical": repr(event.median_seconds)},
                )  # fmt: skip
        elif isinstance(event, Compilation):
            patterns.see(event)
            if event.uncached_detail and event.uncached_because in _UNSAVED and unsaved < _MOST_UNSAVED:
                unsaved += 1
                yield Observation(
                    kind=EVENT, source=source, place=place, name=f"unsaved:{event.uncached_because}", time=event.time,
                    process=process, text=f"{event.function}: {event.uncached_detail}"[:MOST_TEXT],
                )  # fmt: skip
        elif kept < _KEPT:
            kept += 1
            yield from _of_event(place, event, source, process, recovered, survived)
        end = event if isinstance(event, Exit) else end
    for replayed in patterns.standing():
        # A process that was killed, and a log by another hand, may lack what follows from its compilations.
        place, told = findings.get(replayed.id, (len(numbered), None))
        # Compilations do not show that a finding is over; the process would have told that it is not.
        if told is None or (told.count < replayed.count and told.ended is None):
            findings[replayed.id] = place, replayed
    yield from _standing([each for each in findings.values() if each[1].ended is None], ended - begun, source, process)
    if end is not None:
        yield from _of_its_time(end, numbered[-1][0], source, process)
    elif numbered:
        yield Observation(
            kind=LAST, source=source, place=numbered[-1][0], time=ended, process=process,
            text=NO_EXIT, data=pace.told(ended, None, None),
        )  # fmt: skip


def _of_its_time(end: Exit, place: int, source: str, process: str) -> Iterator[Observation]:
    """What its time went into, as the process counted it at its end, and the batches of the inputs that it declared."""
    if end.standing is None or end.standing.wall is None:
        return
    told: list[tuple[str, str, str, object]] = [
        *((counters.TIME, "category", name, seconds) for name, seconds in end.standing.wall.seconds.items()),
        *((counters.BATCHES, "input", each.name, each.batches) for each in end.standing.inputs),
    ]
    for name, label, of, value in told:
        if isinstance(value, int | float) and value > 0:
            # Without a time: that of the end is not when it began.
            yield Observation(
                kind=METRIC, source=source, place=place, name=name, process=process,
                text=f"{label} {of}"[:MOST_TEXT], value=float(value), data={label: str(of)},
            )  # fmt: skip


def _standing(findings: list[tuple[int, Finding]], wall: float, source: str, process: str) -> Iterator[Observation]:
    """The findings that count, as the verdict of the process weighs them."""
    places = {each.id: (place, each) for place, each in findings}
    judged = verdict.of([each for _, each in findings], wall)
    for entry in judged.findings:
        place, finding = places[entry.id]
        watched = judged.verdict == "watch" and (entry.cost.share or 0.0) >= _WATCHED_SHARE
        if (
            (entry.severity == "info" and not watched)
            or finding.finding in _SAID_ELSEWHERE
            or _is_cheap(entry, finding)
        ):
            continue
        yield Observation(
            kind=EVENT, source=source, place=place, name=f"finding:{finding.finding}",
            time=_began(finding), process=_about(finding, process), text=finding.summary[:MOST_TEXT],
            data=_data(finding) | ({"caused_by": entry.caused_by} if entry.caused_by else {}),
        )  # fmt: skip


_CHEAP_SECONDS, _CHEAP_SHARE = 30.0, 0.02
_WATCHED_SHARE = 0.1
"""Share of a process' time from which a finding that is information counts, where no worse one was found."""
_LAST_BATCH_SHARE = 0.2


def _is_cheap(entry: VerdictFinding, finding: Finding) -> bool:
    """Whether a finding cost too little to be a cause: operations as a notebook's cells have them, or a last batch."""
    seconds, share = entry.cost.seconds or 0.0, entry.cost.share
    if entry.severity != "warning" or share is None:
        return False
    if finding.finding == "eager_recompiles":
        return seconds < _CHEAP_SECONDS and share < _CHEAP_SHARE
    return "rest" in finding.data and share < _LAST_BATCH_SHARE


def _began(finding: Finding) -> float:
    """When what it is about began. A process is found to be stuck when it has been so for a while."""
    idle = next((finding.data[each] for each in ("idle_seconds", "silent_seconds") if each in finding.data), None)
    if finding.finding == "stuck" and isinstance(idle, int | float) and 0 <= idle < _MOST_IDLE:
        return finding.time - idle
    return finding.since or finding.time


def _about(finding: Finding, process: str) -> str:
    """Whom a finding is about: process 0 speaks for those that are silent, and of stragglers."""
    index = finding.data.get("process")
    return f"process {index}" if isinstance(index, int) else process


_OS_ERROR = re.compile(r"^\((\d+), ['\"](.*)['\"]\)$")
"""The arguments of an `OSError`, without the path that Python prints with them."""


def _as_printed(found: re.Match[str]) -> str:
    return f"[Errno {found[1]}] {found[2]}"


_SAID_ELSEWHERE = {"uncaught_error", "memory_ran_out", "nonfinite_values"}
"""Findings on events that are observed themselves."""


def _data(finding: Finding) -> dict[str, str]:
    told = {key: str(value)[:200] for key, value in finding.data.items() if isinstance(value, str | int | float)}
    told |= {"lost": str(finding.seconds)} | ({"where": finding.where} if finding.where else {})
    return told | {"function": finding.function, "severity": finding.severity, "advice": finding.advice[:500]}


def _recovered(events: Iterable[Event]) -> set[str]:
    """The watched values that were not finite in a few steps only, and then were again."""
    latest = {str(each.data.get("name")): each for each in events if _tells_of_values(each)}
    return {name for name, each in latest.items() if each.severity != "critical" and each.data.get("finite") is True}


def _tells_of_values(event: Event) -> TypeGuard[Finding]:
    return isinstance(event, Finding) and event.finding == "nonfinite_values"


def _survived(events: Sequence[Event]) -> float:
    """Until when exceptions did not end the process: it made steps or compiled later, or ended as it should.

    At a prompt or in a notebook, nothing catches them, and it goes on.
    """
    end = next((each for each in reversed(events) if isinstance(each, Exit)), None)
    if end is not None:
        return end.time if end.reason == "normal" and not end.code else 0.0
    return max((each.time for each in events if isinstance(each, Step | Compilation)), default=0.0)


def _of_event(
    place: int, event: Event, source: str, process: str, recovered: Container[str], survived: float
) -> Iterator[Observation]:
    name, text, data = event.kind, "", {}
    kind = EVENT
    if isinstance(event, Error):
        name = f"error:{event.error_kind or ''}"
        text = f"{event.error}: {_OS_ERROR.sub(_as_printed, event.message or '')}"
        ended = event.uncaught and (event.report is not None or event.time > survived)
        data = {"uncaught": "yes" if ended else "no", "where": event.call_site or ""}
        if event.advice:
            data |= {"advice": event.advice, "meaning": event.meaning or ""}
    elif isinstance(event, OutOfMemory):
        causes = ",".join(each.cause for each in event.causes)
        stage = "host" if event.error == "MemoryError" else event.stage
        name = f"out_of_memory:{stage}:{causes}"
        text = f"{event.function} ran out of memory: {event.message}"
        data = {"device": event.device or "", "advice": event.causes[0].advice if event.causes else ""}
    elif isinstance(event, NonFinite):
        name = f"nonfinite:{event.name}"
        step = "" if event.step is None else f" at call {event.step}"
        text = f"{event.name}{event.path} is {event.what}{step}, {event.call_site or 'unknown line'}"
        data = {"source": event.source, "where": event.call_site or ""} | (
            {"recovered": "yes"} if event.name in recovered else {}
        )
    elif isinstance(event, Exit):
        name = f"exit:{event.reason}:{event.detail or ''}"
        text = f"the process ended: {event.reason} {event.detail or ''}"
        if event.reason == "normal" and event.code:
            name, text = f"exit:code:{event.code}", f"the process ended with exit code {event.code}"
        kind = END if event.reason == "normal" and not event.code else EVENT
    elif isinstance(event, Manifest):
        kind, text = START, f"{event.program or 'a program'} starts"
        data = {
            "pid": str(event.pid),
            "hostname": event.hostname or "",
            "platform": event.platform or "",
            "count": str(event.process_count),
        }
        data |= {f"version:{key}": value for key, value in event.versions.items()}
        data |= {f"flag:{key}": value for key, value in event.flags.items()}
        data |= {"commit:": event.commit} if event.commit else {}
    yield Observation(
        kind=kind, source=source, place=place, name=name, time=event.time, process=process, text=text[:MOST_TEXT],
        data=data,
    )  # fmt: skip
