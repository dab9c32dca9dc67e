"""What an action is: its class, its bounds, and what somebody asked of it.

An action's module in `known/` has `DECLARATION`; `plan(request, policy, surroundings)`, which says exactly what would
be done; and `run(plan, request, policy, stopped)`, which does it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Class = Literal["A1", "A2"]
"""`A1` observes: its cost is bounded, and it writes a file. `A2` changes something, by adding to it. What destroys has
no class, so it cannot be declared."""

CLASSES: Mapping[Class, str] = {
    "A1": "observes at a bounded cost, and writes a file",
    "A2": "adds to what is stored; a person approves each one",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """One action."""

    name: str
    about: str
    """What it does, as a sentence."""
    kind: Class
    seconds: float
    """How long it may take at most; it is stopped then."""
    bytes: int
    """How much it may write at most."""
    cooldown: float
    """Seconds until it may be repeated on the same target, unless the policy says otherwise."""
    touches_process: bool
    """Whether a process of a job does the work, so that the process must not be busy with something delicate."""
    idempotent: bool
    """Whether a repetition changes nothing more."""
    undo: str
    """How to undo it, as a sentence."""
    verify: str
    """How to see that it worked, as a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Somebody wants an action."""

    action: str
    actor: str
    """`rule:<diagnosis>`, `human:<name>` or `mcp:<client>`."""
    target: str = ""
    """URL of a process that is known; empty for an action that concerns no process."""
    job: str = ""
    incident: str = ""
    """Id of the incident that it is for."""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the agent knows by itself."""

    directory: Path
    """Where it keeps its reports."""
    processes: tuple[str, ...] = ()
    """URLs of the processes of the request's job."""
    prometheus: str = ""
    """The Prometheus that it asks; empty for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Exactly what would be done."""

    text: str
    """As a sentence; a dry run reports it."""
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def id(self, request: Request) -> str:
        """The same for the same action on the same target for the same incident; an approval is for this alone."""
        told = [request.action, request.target, request.incident, self.text, dict(self.arguments)]
        return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a plan."""

    result: Literal["done", "failed"]
    detail: str = ""
    path: str | None = None
    """What was written, on the machine where the work was done."""
    bytes: int | None = None


class RefusedError(Exception):
    """An action cannot be done; the message says why and what to do, as a sentence for a person."""


def as_dict(value: Any) -> dict[str, Any]:
    """A declaration, request or outcome as plain data, without what is empty."""
    return {name: each for name, each in dataclasses.asdict(value).items() if each not in ("", None, {}, ())}
