"""Scenes made by hand for kinds of findings, and what is found in them."""

from __future__ import annotations

from typing import Any

from jaxobs.facts.compilations import CacheState
from jaxobs.facts.findings import Finding
from jaxobs.facts.process import ObserverState, ProcessState
from jaxobs.facts.snapshot import Snapshot
from jaxobs.findings import standing
from jaxobs.findings.cases import Scene

NOW = 1_770_000_000.0


def snapshot(**more: Any) -> Snapshot:
    """A process that is a thousand seconds old and did nothing."""
    process = ProcessState(
        pid=1, hostname="h", program="train.py", started=NOW - 1000, process_index=0, process_count=1, versions={},
        platform="gpu",
    )  # fmt: skip
    known: dict[str, Any] = {
        "time": NOW, "process": process, "functions": (), "phases": {}, "in_progress": (), "devices": (),
        "cache": CacheState(enabled=False, directory=None), "observer": ObserverState(installed=True),
        "last_sequence": 0,
    }  # fmt: skip
    return Snapshot(**(known | more))


def scene(events: dict[str, Any] | None = None, **more: Any) -> Scene:
    """This process, with these fields, and these events."""
    return Scene(snapshot=snapshot(**more), **(events or {}))


def found(events: dict[str, Any] | None = None, **more: Any) -> list[Finding]:
    """All findings of such a scene."""
    return list(standing.shown_by(scene(events, **more)))
