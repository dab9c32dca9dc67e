"""Kubernetes on the pods of a job: their ends, events, nodes, and revisions. Objects are listed, and never changed.

The official client finds the cluster and its credentials: the account of the pod that the agent runs in, or the current
context of a kubeconfig.
"""

import functools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from jaxobs.base.errors import MissingExtraError, SettingError
from jaxobs.ops.agent import deadlines
from jaxobs.ops.agent.cluster_objects import Line, Object, changes, name_of, of_event, of_node, of_pod, owners, part
from jaxobs.ops.agent.pods import MOST_PODS, Pod, Told
from jaxobs.ops.agent.subjects import Subject
from jaxobs.ops.diagnosis.evidence import clean
from jaxobs.ops.diagnosis.gathering.http import MOST_BYTES
from jaxobs.ops.diagnosis.gathering.prometheus_api import Window, dicts
from jaxobs.ops.monitoring.deploying.kubernetes import NAME_LABEL

MOST_OBJECTS = 500
"""Objects of one list."""
MOST_LINES = 200
"""Lines about one pod, the latest ones."""
MOST_ASKED_SINGLY = 4
"""Nodes, and pods without the job's label, that are asked for by name."""

Lists = dict[str, Callable[[], list[Object]]]


class Cluster:
    """The API of a cluster, which the agent may read."""

    source = "kubernetes"

    def __init__(self) -> None:
        """Finds the cluster; does not ask it.

        Raises:
          MissingExtraError: the client is not installed.
          SettingError: there are no credentials.
        """
        try:
            from kubernetes import client, config
        except ImportError as error:
            raise MissingExtraError("jaxobs agent --kubernetes", "kubernetes", "kubernetes") from error
        configuration = client.Configuration()
        in_pod = "KUBERNETES_SERVICE_HOST" in os.environ and "KUBECONFIG" not in os.environ
        load = config.load_incluster_config if in_pod else config.load_kube_config
        try:
            load(client_configuration=configuration)
        except (config.ConfigException, OSError, ValueError) as error:
            raise SettingError(f"--kubernetes: {clean(str(error))}") from None
        configuration.retries = False
        api = client.ApiClient(configuration)
        self._core, self._apps = client.CoreV1Api(api), client.AppsV1Api(api)

    def look(self, subject: Subject, pods: Sequence[Pod], window: Window, since: float, seconds: float) -> Told:
        """Asks for the pods, events and revisions of the job's namespace, and then for what these lead to."""
        job = subject.scope.get("job", "")
        space = subject.scope.get("namespace") or (pods[0].namespace if pods else "")
        if not job or not space:
            return Told(source=self.source, notes=("Kubernetes: no label names the job and its namespace.",))
        problems: list[str] = []
        found = _at_once(self._of_job(space, f"{NAME_LABEL}={job}"), seconds / 2, problems)
        sets = [*found["replicasets"], *found["controllerrevisions"]]
        seen = {name_of(each): each for each in found["pods"]}
        known = {each.name: each for each in pods if each.namespace == space}
        names = list(dict.fromkeys([*known, *seen]))[:MOST_PODS]
        places = {name: str(part(seen.get(name, {}), "spec").get("nodeName", "")) for name in names}
        places |= {name: known[name].node for name in names if name in known and not places[name]}
        nodes = [each for each in dict.fromkeys(places.values()) if each][:MOST_ASKED_SINGLY]
        gone = [each for each in names if each not in seen][:MOST_ASKED_SINGLY]
        more = _at_once(self._of_names(space, gone, nodes), seconds / 2, problems)
        seen |= {name: more[f"pod {name}"][0] for name in gone if more[f"pod {name}"]}
        of_nodes = {name: _of_a_node(name, more, window) for name in nodes}
        changed = changes(sets, found["pods"], found["events"], [one for name in nodes for one in more[f"node {name}"]])
        happened = _events(found["events"], window)
        logs = {
            name: [*of_pod(seen.get(name, {})), *happened.get(name, ()), *of_nodes.get(places[name], ())]
            for name in names
        }
        families = {owner for each in [*found["pods"], *sets] for owner in (name_of(each), *owners(each))}
        logs[""] = [line for name in sorted(families - set(names)) for line in happened.get(name, ())]
        counts = ", ".join(f"{len(listed)} {kind}" for kind, listed in found.items())
        looked_at = f"Kubernetes: {counts}, {len(nodes)} nodes; namespace {space}" if any(found.values()) else ""
        return Told(
            source=self.source, is_of_job=False, looked_at=looked_at,
            logs={name: text for name, lines in logs.items() if (text := _text(lines, name, window))},
            changes=tuple(each for each in changed if each[0] >= window.start),
            notes=tuple(f"Kubernetes: {each}" for each in problems),
        )  # fmt: skip

    def _of_job(self, space: str, chosen: str) -> Lists:
        own = functools.partial(functools.partial, _items, label_selector=chosen)
        return {
            "pods": own(self._core.list_namespaced_pod, space),
            "events": functools.partial(_items, self._core.list_namespaced_event, space),
            "replicasets": own(self._apps.list_namespaced_replica_set, space),
            "controllerrevisions": own(self._apps.list_namespaced_controller_revision, space),
        }

    def _of_names(self, space: str, pods: Iterable[str], nodes: Iterable[str]) -> Lists:
        lists: Lists = {}
        for name in pods:
            lists[f"pod {name}"] = functools.partial(
                _items, self._core.list_namespaced_pod, space, field_selector=f"metadata.name={name}"
            )
        for name in nodes:
            lists[f"node {name}"] = functools.partial(
                _items, self._core.list_node, field_selector=f"metadata.name={name}"
            )
            chosen = f"involvedObject.kind=Node,involvedObject.name={name}"
            lists[f"events of node {name}"] = functools.partial(
                _items, self._core.list_namespaced_event, "default", field_selector=chosen
            )
        return lists


def _of_a_node(name: str, lists: Mapping[str, list[Object]], window: Window) -> list[Line]:
    own = [line for node in lists[f"node {name}"] for line in of_node(node)]
    return own + _events(lists[f"events of node {name}"], window).get(name, [])


def _items(method: Callable[..., Any], *place: str, **chosen: str) -> list[Object]:
    """Returns the objects of one list, as the API has them: the client's own classes differ between its versions."""
    answer = method(*place, limit=MOST_OBJECTS, _preload_content=False, _request_timeout=2.0, **chosen)
    try:
        body = answer.read(MOST_BYTES + 1)
    finally:
        answer.close()
    if len(body) > MOST_BYTES:
        raise ValueError(f"the answer is larger than {MOST_BYTES:,} bytes")
    return list(dicts(json.loads(body).get("items")))


def _at_once(lists: Lists, seconds: float, problems: list[str]) -> dict[str, list[Object]]:
    """Returns each list by its name; an empty one, and a problem, if it could not be had."""
    found, failed = deadlines.by_name(lists, seconds)
    problems += [f"{name}: {each}." for name, each in failed.items()]
    problems += [f"{name}: only the first {MOST_OBJECTS} were read." for name, each in found.items()
                 if len(each) >= MOST_OBJECTS]  # fmt: skip
    return {name: found.get(name, []) for name in lists}


def _events(events: Iterable[Object], window: Window) -> dict[str, list[Line]]:
    """Returns what events say that happened within a window, by the name of what they are about."""
    found: dict[str, list[Line]] = {}
    for event in events:
        if (line := of_event(event, window.start)) is not None:
            found.setdefault(str(part(event, "involvedObject").get("name")), []).append(line)
    return found


def _text(lines: Iterable[Line], pod: str, window: Window) -> str:
    """Returns lines as a log: what is so now first, and then what happened within the window."""
    kept = [each for each in lines if each.time is None or window.start <= each.time <= window.end + 60]
    kept = sorted(dict.fromkeys(kept), key=lambda each: each.time or 0.0)[-MOST_LINES:]
    return "".join(f"{each.text(pod)}\n" for each in kept)
