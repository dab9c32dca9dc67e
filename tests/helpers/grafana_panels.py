"""Grafana's own code on a panel and Prometheus' answers: see `grafana/panels.cjs`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helpers.requirements import grafana, program

SCRIPT = Path(__file__).parent / "grafana" / "panels.cjs"


@dataclass(frozen=True)
class Given:
    """A panel with what Prometheus answered."""

    name: str
    panel: dict[str, Any]
    answers: Sequence[dict[str, Any]]
    """Each with `refId` and `result`."""


@dataclass(frozen=True)
class Field:
    """A column of a table, or a line."""

    name: str
    type: str
    unit: str
    texts: list[str]
    """Last values of the field as they are shown."""
    colors: list[str]
    links: list[str]


@dataclass(frozen=True)
class Drawn:
    """A panel as it is about to be drawn."""

    name: str
    missing: list[str] = field(default_factory=list)
    """Columns that a transformation names and that there are not."""
    unknown: list[str] = field(default_factory=list)
    """Names that Grafana does not know: units, calculations, ..."""
    idle: list[str] = field(default_factory=list)
    """Names of overrides that match nothing."""
    frames: list[list[Field]] = field(default_factory=list)
    error: str = ""


def draw(given: Iterable[Given]) -> list[Drawn]:
    """All of them, in one process."""
    asked = json.dumps([{"name": each.name, "panel": each.panel, "answers": each.answers} for each in given])
    command = [program("node"), str(SCRIPT), str(grafana())]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [
        Drawn(**{**each, "frames": [[Field(**one) for one in frame] for frame in each.get("frames", [])]})
        for each in json.loads(done.stdout)
    ]
