"""The agent reads a real API server, with the rights of the base alone: what a kubelet would say is written by hand."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import yaml

from jaxobs.ops.agent import pods
from jaxobs.ops.agent.cluster import Cluster as Read
from jaxobs.ops.agent.pods import Pod, Told
from jaxobs.ops.agent.subjects import Subject
from jaxobs.ops.diagnosis import diagnose
from jaxobs.ops.diagnosis.gathering.prometheus_api import Window
from jaxobs.ops.diagnosis.result import Diagnosis
from tools.cluster.api import Cluster, Object

JOB, SPACE, ACCOUNT = "gpt", "research", "jaxobs-agent"
_LABELS = {"app.kubernetes.io/name": JOB}
_CONTAINER = {"name": "main", "image": "example.org/own:1", "imageID": "", "restartCount": 1, "ready": False}


def found(cluster: Cluster, base: Path) -> tuple[Diagnosis, Told]:
    """Returns what is diagnosed of a job whose container passed its limit, after another revision had come."""
    for path in sorted(base.glob("*.yaml")):
        document = yaml.safe_load(path.read_text())
        if "metadata" in document:
            if document["kind"] == "ClusterRoleBinding":
                document["subjects"][0]["namespace"] = SPACE
            cluster.apply(document, SPACE)
    now = time.time()
    stamp = datetime.datetime.fromtimestamp(now - 20, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    ended = {"exitCode": 137, "reason": "OOMKilled", "startedAt": stamp, "finishedAt": stamp}
    pod = _object("v1", "Pod", f"{JOB}-0", spec={"nodeName": "node-1", "containers": [_of(1)]})
    cluster.apply(pod, SPACE)
    cluster.status(pod, SPACE, {"phase": "Running", "containerStatuses": [
        {**_CONTAINER, "state": {"running": {"startedAt": stamp}}, "lastState": {"terminated": ended}}
    ]})  # fmt: skip
    node = _object("v1", "Node", "node-1", spec={"taints": [{"key": "google.com/tpu", "effect": "NoSchedule"}]})
    cluster.apply(node, "")
    about = {"kind": "Pod", "namespace": SPACE, "name": f"{JOB}-0"}
    cluster.apply(_object("v1", "Event", f"{JOB}-0.1", involvedObject=about, type="Warning", reason="BackOff", count=3,
                          message="Back-off restarting failed container main", source={"component": "kubelet"},
                          firstTimestamp=stamp, lastTimestamp=stamp), SPACE)  # fmt: skip
    for number in (1, 2):
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": JOB, "uid": "1", "controller": True}
        made = _object("apps/v1", "ReplicaSet", f"{JOB}-{number}", spec={
            "replicas": 0, "selector": {"matchLabels": _LABELS},
            "template": {"metadata": {"labels": _LABELS}, "spec": {"containers": [_of(number)]}},
        })  # fmt: skip
        made["metadata"] |= {
            "annotations": {"deployment.kubernetes.io/revision": str(number)},
            "ownerReferences": [owner],
        }
        cluster.apply(made, SPACE)
    with _as_agent(cluster):
        window = Window(end=time.time() + 1, seconds=3600)
        told = Read().look(Subject((("job", JOB), ("namespace", SPACE))), [], window, now, 20)
    return diagnose(pods.read([told], [Pod(SPACE, f"{JOB}-0", "10.0.0.7:9464", "node-1")], now)), told


def refused(cluster: Cluster) -> bool:
    """Returns whether the account of the agent may neither read Secrets nor change pods."""
    account = f"system:serviceaccount:{SPACE}:{ACCOUNT}"
    asked = [("list", "secrets"), ("get", "pods/log"), ("delete", "pods"), ("patch", "nodes"), ("create", "pods/exec")]
    for verb, resource in asked:
        name, _, inner = resource.partition("/")
        attributes = {"verb": verb, "resource": name, "subresource": inner, "namespace": SPACE}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                  "spec": {"user": account, "resourceAttributes": attributes}}  # fmt: skip
        answer = json.loads(cluster.text("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review))
        if answer["status"]["allowed"]:
            return False
    return True


def _object(version: str, kind: str, name: str, **parts: object) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": dict(_LABELS)}, **parts}


def _of(number: int) -> Object:
    return {"name": "main", "image": f"example.org/own:{number}"}


@contextlib.contextmanager
def _as_agent(cluster: Cluster) -> Iterator[None]:
    """The kubeconfig of the agent's account, in the environment."""
    path = f"/api/v1/namespaces/{SPACE}/serviceaccounts/{ACCOUNT}/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    token = json.loads(cluster.text("POST", path, body))["status"]["token"]
    config = json.loads(cluster.kubeconfig.read_text())
    config["users"][0]["user"]["token"] = token
    own = cluster.folder / "kubeconfig-of-agent"
    own.write_text(json.dumps(config))
    before = os.environ.get("KUBECONFIG")
    os.environ["KUBECONFIG"] = str(own)
    try:
        yield
    finally:
        os.environ.pop("KUBECONFIG")
        if before is not None:
            os.environ["KUBECONFIG"] = before
