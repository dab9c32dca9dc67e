"""Kustomize bases: what `kubectl apply -k` takes of a folder."""

from __future__ import annotations

from collections.abc import Iterable

from jaxobs.ops.monitoring.deploying.kubernetes import Object


def base(resources: Iterable[str]) -> Object:
    """A base of files beside it and of folders."""
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": list(resources),
    }
