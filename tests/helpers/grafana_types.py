"""Dashboards against the types of Grafana's own schema package, for each of its major versions."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers.requirements import grafana, program

VERSIONS = {"10.4": "schema-10", "11.6": "schema-11", "12.4": "schema-12", "13.2": "schema"}
SCRIPT = Path(__file__).parent / "grafana" / "types.cjs"


@dataclass(frozen=True)
class Compared:
    """Errors of TypeScript."""

    compared: int
    """Values."""
    unknown: list[str]
    """Names that the version does not have: `kind of panel and place: name`."""
    said: list[str]
    """All else."""


def compare(version: str, classic: Mapping[str, Any], manifests: Mapping[str, Any] | None = None) -> Compared:
    """Compares dashboards with a version of Grafana.

    Args:
      version: one of `VERSIONS`.
      classic: dashboards by name.
      manifests: specs of version 2 by name; only the newest schema has them.
    """
    panels = [
        {"name": f"{name}/{panel['title']}", "type": panel["type"], "options": panel.get("options", {}),
         "custom": panel.get("fieldConfig", {}).get("defaults", {}).get("custom", {})}
        for name, board in classic.items() for panel in board["panels"] if panel["type"] != "row"
    ]  # fmt: skip
    given = {"dashboards": classic, "panels": panels, "manifests": manifests or {}}
    command = [program("node"), str(SCRIPT), str(grafana()), VERSIONS[version]]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Compared(**json.loads(done.stdout))
