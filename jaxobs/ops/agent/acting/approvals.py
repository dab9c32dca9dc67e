"""A person's word for one plan: given once, on the agent's machine, for a short time, and good for one attempt.

An approval is a line of the record, written by the command `jaxobs agent approve`. No HTTP path and no tool of an
assistant writes one, so where nobody can run that command nothing is approved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Line = Mapping[str, Any]


def wanted(lines: Sequence[Line], now: float, minutes: float) -> dict[str, Line]:
    """The plans that wait for a person's word, by id; again, after an attempt that a gate refused."""
    found: dict[str, Line] = {}
    approved: dict[str, Line] = {}
    for line in lines:
        plan = str(line.get("id"))
        if line["decision"] == "approval_wanted" and now - line["at"] < 60 * minutes:
            found[plan] = line
        elif line["decision"] in ("approved", "begun", "denied"):
            asked = found.pop(plan, None)
            if asked is not None and line["decision"] == "approved":
                approved[plan] = asked
        elif line["decision"] == "refused":
            found |= {each: asked for each, asked in approved.items() if _asks(asked) == _asks(line)}
    return found


def granted(lines: Sequence[Line], plan: str, now: float, minutes: float) -> str | None:
    """Who approved a plan, if that still holds and there was no attempt since."""
    approved = None
    for line in lines:
        if line.get("id") == plan and line["decision"] == "approved" and now - line["at"] < 60 * minutes:
            approved = line
        elif approved is not None and (
            (line.get("id") == plan and line["decision"] in ("begun", "denied"))
            or (line["decision"] == "refused" and _asks(line) == _asks(approved))
        ):
            approved = None
    return None if approved is None else str(approved.get("actor") or "somebody")


def untried(lines: Sequence[Line], now: float, minutes: float) -> list[Line]:
    """The questions whose approval nobody has acted on: whoever asked may ask again, once."""
    questions: dict[str, Line] = {}
    found: dict[str, Line] = {}
    for line in lines:
        plan = str(line.get("id"))
        if line["decision"] == "approved" and plan in questions and now - line["at"] < 60 * minutes:
            found[plan] = questions[plan]
        elif line["decision"] != "approved":
            found = {each: asked for each, asked in found.items() if _asks(asked) != _asks(line)}
        if line["decision"] == "approval_wanted":
            questions[plan] = line
    return list(found.values())


def _asks(line: Line) -> tuple[object, ...]:
    """What was asked for, whatever the plan."""
    return tuple(line.get(name, "") for name in ("action", "target", "job", "incident"))
