"""A person's word for one plan: given once, on the agent's machine, for a short time.

An approval is a line of the record, written by the command `jaxobs agent approve`. No HTTP path and no tool of an
assistant writes one, so where nobody can run that command nothing is approved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Lines = Sequence[Mapping[str, Any]]


def wanted(lines: Lines, now: float, minutes: float) -> dict[str, Mapping[str, Any]]:
    """The plans that wait for a person's word, by id."""
    found: dict[str, Mapping[str, Any]] = {}
    for line in lines:
        if line["decision"] == "approval_wanted" and now - line["at"] < 60 * minutes:
            found[str(line.get("id"))] = line
        elif line["decision"] in ("approved", "begun", "denied"):
            found.pop(str(line.get("id")), None)
    return found


def granted(lines: Lines, plan: str, now: float, minutes: float) -> str | None:
    """Who approved a plan and has not been acted on yet, within the time that an approval holds."""
    by = None
    for line in lines:
        if line.get("id") != plan:
            continue
        if line["decision"] == "approved" and now - line["at"] < 60 * minutes:
            by = str(line.get("actor") or "somebody")
        elif line["decision"] in ("begun", "denied"):
            by = None
    return by
