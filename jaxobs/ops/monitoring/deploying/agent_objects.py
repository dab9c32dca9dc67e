"""The agent in a cluster: one replica with a volume, which reaches and is reached by as little as it needs.

It has no access to the API of Kubernetes, unless the site wants it to read there. The site makes the Secrets.
`agent.yaml` has the objects.
"""

from __future__ import annotations

import copy
import functools
from importlib import resources
from typing import cast

from jaxobs.base.version import __version__
from jaxobs.ops.monitoring import yaml_text
from jaxobs.ops.monitoring.deploying.kubernetes import Object


def every() -> dict[str, Object]:
    """Returns the objects by the names of their files."""
    return copy.deepcopy(_read()["of_agent"])


def reading_cluster() -> dict[str, Object]:
    """Returns the account with which it may read the cluster, by the names of the files."""
    return copy.deepcopy(_read()["reading_cluster"])


def kustomization_of_reading() -> Object:
    """Returns a Kustomize base with the agent's base, that account, and a patch by which the agent has it."""
    patch = yaml_text.dump(_read()["patch"], what="kubernetes")
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "resources": ["../agent", *(f"{name}.yaml" for name in reading_cluster())],
        "patches": [{"patch": patch.partition("\n")[2]}],
    }  # fmt: skip


@functools.cache
def _read() -> dict[str, Object]:
    text = (resources.files(__package__) / "agent.yaml").read_text(encoding="utf-8")
    return cast("dict[str, Object]", yaml_text.load(text.replace("${version}", __version__))[0])
