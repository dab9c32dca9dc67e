"""Requests to a process, such as a capture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from jaxobs.facts.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Action(Event):
    """A request to jaxobs, such as a capture, and its outcome."""

    kind: ClassVar[str] = "action"

    name: str
    """`memory`, `profile`: the last part of `/api/v1/actions/<name>`."""
    origin: str
    """Origin of the request: `http`, `signal` or `python`."""
    result: str
    """`done`, `refused` (a limit, or another capture is in progress) or `failed`."""
    detail: str | None = None
    """A sentence for a person: the capture that was made, or why none was."""
    path: str | None = None
    """The file or directory that was written."""
    bytes: int | None = None
    seconds: float | None = None
    """Duration."""
