"""Surroundings of a cause: timeline, affected processes, cache and versions, and what could be done next."""

import itertools
import shlex
from collections.abc import Sequence

from jaxobs.facts.events import timestamp
from jaxobs.ops.agent import steps
from jaxobs.ops.agent.incidents import Incident
from jaxobs.ops.agent.report import BlastRadius, Cause, Context, Moment, Step, SuggestedAction
from jaxobs.ops.diagnosis.gathering.prometheus_api import Answer, Window

Answers = Sequence[tuple[Step, Answer]]
Changes = Sequence[tuple[float, str]]
"""Times, and what changed around the job then."""

MOST_NAMED = 50
_MEMORY = {"device_out_of_memory", "memory_leak", "absurd_allocation", "host_out_of_memory", "accelerator_memory_taken"}
_CACHE = {"cache_lost", "cold_requests"}
_SLOW = {"straggler", "input_bound", "recompilation", "device_throttled", "process_finding"}


def answer_of(answers: Answers, name: str) -> Answer:
    """Returns the answer of one step that every incident has."""
    return next((answer for step, answer in answers if step.id == name), Answer())


def timeline(
    incident: Incident, answers: Answers, causes: Sequence[Cause], window: Window, changes: Changes
) -> list[Moment]:  # fmt: skip
    """Returns the timeline, as far as somebody says it: alerts, causes, restarts, changes of version."""
    found: list[tuple[float, Moment]] = []

    def note(at: float | None, what: str, evidence: Sequence[str] = ()) -> None:
        if at is not None:
            found.append((at, Moment(time=timestamp(at), what=what, evidence=list(evidence))))

    for alert in incident.alerts.values():
        where = f" of {alert.labels['instance']}" if "instance" in alert.labels else ""
        note(alert.starts_at, f"{alert.name or 'An alert'}{where} starts to fire.")
        note(alert.ends_at, f"{alert.name or 'An alert'}{where} resolves.")
    note(incident.opened_at, "The first webhook reaches the agent.")
    for line in answer_of(answers, "starts").lines:
        for at in sorted({value for _, value in line.points if window.start <= value <= window.end})[-5:]:
            note(at, f"{line.process} starts.")
    for moment, what in changes:
        note(moment, f"{what}.")
    told = [Moment(time=each.onset, what=f"First sign: {each.title} ({each.component}).", evidence=each.evidence)
            for each in causes if each.onset]  # fmt: skip
    return sorted([*(each for _, each in found), *told], key=lambda each: (each.time, each.what))[:MOST_NAMED]


def answers_now(answers: Answers) -> bool:
    """Returns whether a process of the job answers Prometheus."""
    up = answer_of(answers, "processes").lines
    latest = max((each.points[-1][0] for each in up), default=0.0)
    return any(each.points[-1] == (latest, 1.0) for each in up)


def blast_radius(answers: Answers, causes: Sequence[Cause], instances: Sequence[str]) -> BlastRadius:
    """Returns the affected processes, by Prometheus' own view of the job."""
    up = answer_of(answers, "processes")
    latest = max((each.points[-1][0] for each in up.lines), default=0.0)
    current = [each for each in up.lines if each.points[-1][0] >= latest]
    down = sorted(each.process for each in current if each.points[-1][1] == 0)
    named = [name for each in causes for name in (each.component, *each.victims)]
    affected = list(dict.fromkeys([*named, *instances]))[:MOST_NAMED]
    firing = sorted({each.labels.get("alertname", "") for each in answer_of(answers, "alerts").lines
                     if each.points[-1][0] >= latest - 60} - {""})  # fmt: skip
    count = len(current) if up.problem is None and current else None
    known = {each.process for each in current}
    if count is None:
        summary = "Unknown: Prometheus has no processes of it."
    else:
        summary = f"Processes named by alerts or evidence: {len(known & {*affected})} of {count}. "
        summary += f"Processes that answer Prometheus: {count - len(down)} of {count}."
    return BlastRadius(
        processes=count, unreachable=down[:MOST_NAMED], affected=affected, alerts_firing=firing, summary=summary
    )


def context(answers: Answers, window: Window, around: Changes) -> Context:
    """Returns cache hits and versions, for a postmortem."""
    hits, asked = steps.cache_hits(answer_of(answers, "cache"))
    versions: dict[str, list[str]] = {}
    pins: dict[tuple[str, str], list[tuple[float, float, str]]] = {}
    for line in answer_of(answers, "versions").lines:
        for name in steps.VERSIONS:
            value = line.labels.get(name, "")
            if value:
                versions[name] = sorted({*versions.get(name, []), value})
                pins.setdefault((line.process, name), []).append((line.points[0][0], line.points[-1][0], value))
    changes = [f"{what} at {timestamp(at)}" for at, what in around]
    for (process, name), runs in sorted(pins.items()):
        ordered = sorted(runs)
        for (_, _, old), (at, _, new) in itertools.pairwise(ordered):
            if old != new:
                changes.append(f"{process}: {name} {old} -> {new} at {timestamp(at)}")
    started = {(line.process, value) for line in answer_of(answers, "starts").lines for _, value in line.points
               if value >= window.start}  # fmt: skip
    return Context(
        cache_hits=None if hits is None else round(hits, 4),
        cache_requests=round(asked, 1) if hits is not None else None,
        versions=versions,
        version_changes=changes[:MOST_NAMED],
        restarts=len(started) if answer_of(answers, "starts").lines else None,
    )


def suggested(verdict: str, causes: Sequence[Cause], asked: Sequence[str]) -> list[SuggestedAction]:
    """Returns harmless actions as data: the desk decides whether they may be done, and does them."""
    found = []
    for target in asked[:3]:
        actions = shlex.quote(f"{target}/api/v1/actions")
        post = f'curl -s -X POST -H "Authorization: Bearer $JAXOBS_ACTION_TOKEN" {actions}'
        for cause in causes:
            if cause.id in _MEMORY:
                found.append(_action("dump_memory", target, "Shows which lines hold the memory.", f"{post}/memory"))
            if cause.id in _SLOW:
                found.append(
                    _action("capture_profile", target, "Shows where the time of a step goes.", f"{post}/profile")
                )
        if verdict == "inconclusive":
            command = f"jaxobs explain {shlex.quote(target)}"
            found.append(_action("collect_bundle", target, "Keeps what the process knows before it is gone.", command))
    for cause in causes:
        if cause.id in _CACHE:
            found.append(_action("warm_cache", cause.component, "The next start finds its programs compiled.",
                                 "jaxobs cache warm --help"))  # fmt: skip
    return list({(each.action, each.target): each for each in found}.values())


def _action(action: str, target: str, why: str, command: str) -> SuggestedAction:
    return SuggestedAction.model_validate({"action": action, "target": target, "why": why, "command": command})
