"""Kustomize bases, by which `kubectl apply -k` takes a folder."""

from __future__ import annotations

from collections.abc import Iterable

from jaxobs.ops.monitoring.deploying.kubernetes import Object


def base(resources: Iterable[str]) -> Object:
    """Returns a base with these files and folders."""
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": list(resources),
    }
