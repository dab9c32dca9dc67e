"""Names that events and answers had in an earlier version: read for one more version, and written no longer."""

from collections.abc import Mapping
from typing import Any

FIELDS = {"step": {"usual_seconds": "typical_seconds"}}
"""Old and new names of fields, by the kind of the event."""

FINDINGS = {"functions_made_again": "recreated_functions", "eager_initialisation": "eager_initialization"}

VERDICTS = {"mend": "fix", "fine": "ok"}


def current(body: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the event under the names of this version."""
    names = FIELDS.get(body["event"])
    found = {names.get(name, name): value for name, value in body.items()} if names else dict(body)
    if body["event"] == "finding" and found.get("finding") in FINDINGS:
        found["finding"] = FINDINGS[found["finding"]]
    return found


def verdict(snapshot: Any) -> Any:
    """Returns the answer of `/api/v1/snapshot` with the word of its verdict as this version says it."""
    said = snapshot.get("verdict") if isinstance(snapshot, Mapping) else None
    if not isinstance(said, Mapping) or said.get("verdict") not in VERDICTS:
        return snapshot
    headline = str(said.get("headline", "")).replace("Nothing to mend:", "Nothing to fix:")
    return {**snapshot, "verdict": {**said, "verdict": VERDICTS[said["verdict"]], "headline": headline}}
