"""Objects of Kubernetes as lines of a log, in the form of `kubectl get events`, which the reader of logs knows."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jaxobs.facts.events import timestamp
from jaxobs.ops.diagnosis.evidence import clean
from jaxobs.ops.diagnosis.gathering.log_times import of_stamp
from jaxobs.ops.diagnosis.gathering.prometheus_api import dicts

Object = Mapping[str, Any]

REVISION = "deployment.kubernetes.io/revision"
_NOT_SAID = re.compile(r"(?:Liveness|Readiness|Startup) probe|Cancelling deletion of ")
"""Messages that quote whatever a probe got, and those about what does not happen."""
_BAD = dict.fromkeys(("MemoryPressure", "DiskPressure", "PIDPressure"), "")
"""Conditions that by themselves show no fault: an evicted pod names them."""
_SCALED_UP = re.compile(r"Scaled up replica set (\S+) (?:from 0 )?to ")


@dataclass(frozen=True, slots=True)
class Line:
    """Line of such a log."""

    time: float | None
    """Seconds since the epoch; None for a state that says only that it is so now."""
    reason: str
    """Word for what happened, such as `OOMKilled`."""
    message: str

    def text(self, pod: str) -> str:
        """Returns the line as one about a pod."""
        when = "" if self.time is None else f"{timestamp(self.time)} "
        about = f"pod/{pod}" if pod else "job"
        return f"{when}Warning {re.sub(r'[^A-Za-z0-9_]+', '', self.reason) or 'Unknown'} {about} {self.message}"


def of_pod(pod: Object) -> Iterator[Line]:
    """Yields the ends of its containers, what they wait for, and what the scheduler and the kubelet did with it."""
    status = part(pod, "status")
    containers = [each for name in ("initContainerStatuses", "containerStatuses") for each in dicts(status.get(name))]
    for container in containers:
        name = container.get("name", "")
        for state in (part(container, "state"), part(container, "lastState")):
            ended, waits = part(state, "terminated"), part(state, "waiting")
            if ended and ended.get("exitCode"):
                said = f"Container {name} ended with exit code {ended['exitCode']}: {ended.get('reason', '')}"
                yield _line(ended.get("finishedAt"), ended.get("reason"), said, ended.get("message"))
            if waits:
                yield _line(None, waits.get("reason"), f"Container {name} waits:", waits.get("message"))
    is_evicted = status.get("reason") == "Evicted"
    for condition in dicts(status.get("conditions")):
        kind = (condition.get("type"), condition.get("status"))
        # What an eviction was for stands in its own message.
        if kind == ("PodScheduled", "False") or (kind == ("DisruptionTarget", "True") and not is_evicted):
            said = f"{condition['type']}: {condition.get('reason', '')}:"
            yield _line(condition.get("lastTransitionTime"), condition.get("reason"), said, condition.get("message"))
    if status.get("reason"):
        yield _line(_latest(pod, containers), status["reason"], status.get("message"))


def of_node(node: Object) -> Iterator[Line]:
    """Yields what is wrong with a node, its taints, and its maintenance that is under way."""
    name = name_of(node)
    for condition in dicts(part(node, "status").get("conditions")):
        kind, state, since = str(condition.get("type")), condition.get("status"), condition.get("lastTransitionTime")
        said = f"{condition.get('reason', '')}: {condition.get('message', '')}"
        if kind == "Ready" and state != "True":
            yield _line(since, "NodeNotReady", f"Node {name} status is now: NodeNotReady: {said}")
        elif kind != "Ready" and state == _BAD.get(kind, "False" if kind.endswith("Ready") else "True"):
            yield _line(since, kind, f"Node {name} has the condition {kind}={state}: {said}")
    for each in dicts(part(node, "spec").get("taints")):
        yield _line(each.get("timeAdded"), "Taint", f"Node {name} has the taint {each.get('key')}:{each.get('effect')}")
    for key, value in part(part(node, "metadata"), "labels").items():
        if "maintenance" in key:
            yield _line(None, "Label", f"Node {name} has the label {key}={value}")


def of_event(event: Object, since: float) -> Line | None:
    """Returns what an event says that happened since a time, at its first time since then; None if it says no fact."""
    stamps = (event.get("firstTimestamp"), event.get("eventTime"), event.get("lastTimestamp"),
              part(event, "series").get("lastObservedTime"))  # fmt: skip
    times = [(moment(each) or 0.0, each) for each in stamps]
    stamp = min(((at, each) for at, each in times if at >= since), default=(0.0, None))[1]
    if stamp is None or _NOT_SAID.match(str(event.get("message"))):
        return None
    return _line(stamp, event.get("reason"), event.get("message"))


def changes(
    sets: Iterable[Object], pods: Iterable[Object], events: Iterable[Object], nodes: Iterable[Object]
) -> Iterator[tuple[float, str]]:  # fmt: skip
    """Yields when each Deployment or StatefulSet got another revision, and what else changes around a job.

    A revision that is rolled back to is older than the one before it: an event of its ReplicaSet, or the first start
    of a pod since then, says when. GKE plans the maintenance of nodes.
    """
    for node in nodes:
        stamp = str(part(part(node, "metadata"), "labels").get("cloud.google.com/scheduled-maintenance-time"))
        if re.fullmatch(r"[0-9]{1,10}", stamp):
            yield float(stamp), f"maintenance of {name_of(node)} is scheduled"
    scaled: dict[str, list[float]] = {}
    for event in events:
        if found := _SCALED_UP.match(str(event.get("message"))):
            scaled.setdefault(found[1], []).append(moment(event.get("firstTimestamp")) or 0.0)
    for metadata in (part(each, "metadata") for each in pods):
        name = str(part(metadata, "labels").get("controller-revision-hash"))
        scaled.setdefault(name, []).append(moment(metadata.get("creationTimestamp")) or 0.0)
    by_owner: dict[str, list[tuple[int, float, str, str]]] = {}
    for one in sets:
        number = str(one.get("revision") or part(part(one, "metadata"), "annotations").get(REVISION))
        at = moment(part(one, "metadata").get("creationTimestamp"))
        if number.isdecimal() and at is not None:
            template = part(part(part(part(one, "data") or one, "spec"), "template"), "spec")
            images = ", ".join(str(each.get("image")) for each in dicts(template.get("containers")))
            by_owner.setdefault(next(owners(one), name_of(one)), []).append((int(number), at, images, name_of(one)))
    for owner, found_sets in sorted(by_owner.items()):
        for (before, last, old, _), (after, at, new, name) in itertools.pairwise(sorted(found_sets)):
            if at < last:
                at = min((each for each in scaled.get(name, ()) if each > last), default=at)
            differs = f" ({old} -> {new})" if old != new else ""
            yield at, clean(f"{owner}: revision {before} -> {after}{differs}")


def name_of(thing: Object) -> str:
    """Returns the name of an object."""
    return str(part(thing, "metadata").get("name", ""))


def owners(thing: Object) -> Iterator[str]:
    """Yields the names of the objects that an object belongs to."""
    return (str(each.get("name")) for each in dicts(part(thing, "metadata").get("ownerReferences")))


def part(thing: Object, name: str) -> Object:
    """Returns an object inside another one; an empty one if there is none."""
    found = thing.get(name)
    return found if isinstance(found, dict) else {}


def moment(stamp: object) -> float | None:
    """Returns a time of the API in seconds since the epoch."""
    return of_stamp(stamp, 1970) if isinstance(stamp, str) else None


def _latest(pod: Object, containers: Iterable[Object]) -> str | None:
    """Returns when a pod ended: with its last container, or when it was marked for deletion."""
    ends = [part(part(each, "state"), "terminated").get("finishedAt") for each in containers]
    conditions = [each.get("lastTransitionTime") for each in dicts(part(pod, "status").get("conditions"))]
    stamps = [each for each in ends if isinstance(each, str)] or [each for each in conditions if isinstance(each, str)]
    return max(stamps, default=None)


def _line(stamp: object, reason: object, *said: object) -> Line:
    return Line(moment(stamp), str(reason or ""), clean(" ".join(str(each) for each in said if each), 600))
