"""The agent in a cluster: one replica with a volume, which reaches and is reached by as little as it needs.

It has no access to the API of Kubernetes, unless the site wants it to read there. The site makes the Secrets.
`agent.yaml` has the objects.
"""

from jaxobs.ops.monitoring import yaml_text
from jaxobs.ops.monitoring.deploying.kubernetes import Object, read

_FILE = "agent.yaml"


def every() -> dict[str, Object]:
    """Returns the objects by the names of their files."""
    return read("of_agent", _FILE)


def reading_cluster() -> dict[str, Object]:
    """Returns the account with which it may read the cluster, by the names of the files."""
    return read("reading_cluster", _FILE)


def kustomization_of_reading() -> Object:
    """Returns a Kustomize base with the agent's base, that account, and a patch by which the agent has it."""
    patch = yaml_text.dump(read("patch", _FILE), what="kubernetes")
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "resources": ["../agent", *(f"{name}.yaml" for name in reading_cluster())],
        "patches": [{"patch": patch.partition("\n")[2]}],
    }  # fmt: skip
