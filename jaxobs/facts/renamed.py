"""Names that events had in logs of an earlier version: read for one more version, and written no longer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FIELDS = {"step": {"usual_seconds": "typical_seconds"}}
"""Old and new names of fields, by the kind of the event."""

FINDINGS = {
    "functions_made_again": "recreated_functions",
    "eager_initialisation": "eager_initialization",
}


def current(body: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the event under the names of this version."""
    names = FIELDS.get(body["event"], {})
    found = {names.get(name, name): value for name, value in body.items()}
    if body["event"] == "finding" and found.get("finding") in FINDINGS:
        found["finding"] = FINDINGS[found["finding"]]
    return found
