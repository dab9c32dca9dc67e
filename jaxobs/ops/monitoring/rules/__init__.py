"""Alerts: each is a TOML file of this folder, with its runbook (`.md`) and promtool cases (`.tests.yaml`) next to it.

A file has the fields of `rule_types.Alert`; `for` is `for_` there. TOML is read by the standard library, so that the
agent and `jaxobs diagnose` know the alerts without extras.
"""

import functools
import tomllib
from importlib import resources
from typing import Any

from jaxobs.facts.verdicts import SEVERITIES
from jaxobs.ops.monitoring.rule_texts import Beside
from jaxobs.ops.monitoring.rule_types import ORDER, Alert, Threshold


@functools.cache
def declared() -> dict[str, Alert]:
    """Returns all alerts by the names of their files.

    Raises:
      ValueError: a file has an unknown field, lacks one, or has a wrong value; the message names the file.
    """
    found = {}
    for file in sorted(resources.files(__package__).iterdir(), key=lambda file: file.name):
        name, _, ending = file.name.partition(".")
        if ending == "toml":
            try:
                found[name] = _alert(name, tomllib.loads(file.read_text(encoding="utf-8")))
            except (TypeError, ValueError) as error:
                raise ValueError(f"{file.name}: {error}") from error
    return found


def _alert(name: str, fields: dict[str, Any]) -> Alert:
    thresholds = {key: Threshold(**value) for key, value in fields.pop("thresholds", {}).items()}
    fields["for_"] = fields.pop("for", "")
    fields["panel"], fields["inhibits"] = tuple(fields.get("panel", ())), tuple(fields.get("inhibits", ()))
    return Alert(**fields, thresholds=thresholds, texts=Beside(f"{__package__}.{name}"))


def alerts() -> list[Alert]:
    """Returns all alerts: by concern, then by severity, then by name."""
    found = declared().values()
    return sorted(found, key=lambda each: (ORDER.index(each.concern), SEVERITIES.index(each.severity), each.name))
