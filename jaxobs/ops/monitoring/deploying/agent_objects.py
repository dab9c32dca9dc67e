"""The agent in a cluster: one replica with a volume, which reaches and is reached by as little as it needs.

It has no access to the API of Kubernetes. The site makes the Secrets: one with `token` for Alertmanager and with
`read-token` for readers, and one with the keys of the destinations that it sends to.
"""

from __future__ import annotations

from jaxobs.base.version import __version__
from jaxobs.ops.monitoring.deploying.kubernetes import LABELS, NAME_LABEL, PORT, SCRAPED, Object
from jaxobs.ops.monitoring.deploying.prometheus import AGENT

NUMBER = 9465
PROMETHEUS = "http://prometheus-operated.monitoring:9090"
CALLERS = ("alertmanager", "prometheus")
"""Names of the pods that reach it, in any namespace: for webhooks, and for its metrics."""
TARGETS = (443, 9090, 9464)
"""Ports that it asks or sends to: destinations, Prometheus, processes."""
KEYS = {"JAXOBS_AGENT_TOKEN": "token", "JAXOBS_AGENT_READ_TOKEN": "read-token"}
"""Variables, and the keys of the Secret `jaxobs-agent` that they have."""
MORE_KEYS = f"{AGENT}-keys"
"""Secret that may have further variables: those of destinations, and of a Prometheus that wants a token."""
_CHOSEN = {NAME_LABEL: AGENT}
_META = {"name": AGENT, "labels": {**LABELS, **_CHOSEN}}
_USER = 65532


def deployment() -> Object:
    """Returns the Deployment: never two agents at a time, because they must not share the volume."""
    keys = [{"name": name, "valueFrom": {"secretKeyRef": {"name": AGENT, "key": key}}} for name, key in KEYS.items()]
    container = {
        "name": "agent",
        "image": f"registry.example.org/jaxobs:{__version__}",
        "command": ["jaxobs", "agent"],
        "args": [
            f"--listen=0.0.0.0:{NUMBER}", "--prometheus=$(PROMETHEUS)", "--url=$(URL)", "--reports=/reports",
            "--keep-days=90",
        ],
        "env": [{"name": "PROMETHEUS", "value": PROMETHEUS}, {"name": "URL", "value": ""}, *keys],
        "envFrom": [{"secretRef": {"name": MORE_KEYS, "optional": True}}],
        "ports": [{"name": PORT, "containerPort": NUMBER}],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": PORT}},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": PORT}},
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "reports", "mountPath": "/reports"}, {"name": "tmp", "mountPath": "/tmp"}],
    }  # fmt: skip
    pod = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True, "runAsUser": _USER, "runAsGroup": _USER, "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [
            {"name": "reports", "persistentVolumeClaim": {"claimName": AGENT}}, {"name": "tmp", "emptyDir": {}},
        ],
    }  # fmt: skip
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": _META,
        "spec": {
            "replicas": 1, "strategy": {"type": "Recreate"}, "selector": {"matchLabels": _CHOSEN},
            "template": {"metadata": {"labels": {**LABELS, **_CHOSEN, **SCRAPED}}, "spec": pod},
        },
    }  # fmt: skip


def service() -> Object:
    """Returns the Service, whose name AlertmanagerConfig has."""
    ports = [{"name": "http", "port": NUMBER, "targetPort": PORT}]
    return {
        "apiVersion": "v1", "kind": "Service", "metadata": _META, "spec": {"selector": _CHOSEN, "ports": ports},
    }  # fmt: skip


def volume() -> Object:
    """Returns the claim of the volume of reports."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": _META, "spec": spec}


def network_policy() -> Object:
    """Returns who reaches the agent, and what it reaches."""
    callers = {
        "namespaceSelector": {},
        "podSelector": {"matchExpressions": [{"key": NAME_LABEL, "operator": "In", "values": list(CALLERS)}]},
    }
    names = [{"port": 53, "protocol": protocol} for protocol in ("UDP", "TCP")]
    return {
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": _META,
        "spec": {
            "podSelector": {"matchLabels": _CHOSEN},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [callers], "ports": [{"port": PORT, "protocol": "TCP"}]}],
            "egress": [{"ports": [*names, *({"port": port, "protocol": "TCP"} for port in TARGETS)]}],
        },
    }  # fmt: skip


def every() -> dict[str, Object]:
    """Returns the objects by the names of their files."""
    return {
        "deployment": deployment(), "service": service(), "persistentvolumeclaim": volume(),
        "networkpolicy": network_policy(),
    }  # fmt: skip
