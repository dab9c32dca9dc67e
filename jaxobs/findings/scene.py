"""A scene: how a process stands, with the latest of its rarer events. And a case: what a kind of finding sees in it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxobs.facts.cache import CacheLookup
from jaxobs.facts.errors import Error
from jaxobs.facts.events import Event
from jaxobs.facts.numbers import NonFinite
from jaxobs.facts.out_of_memory import OutOfMemory
from jaxobs.facts.snapshot import Snapshot
from jaxobs.facts.steps import Step

UNKNOWN = "<unknown>"
"""The function of a finding that is about none."""

KINDS: tuple[type[Event], ...] = (NonFinite, Step, Error, OutOfMemory, CacheLookup)
"""The events that a scene is made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What a process knows of itself at one moment. Events are the latest of their kind, oldest first."""

    snapshot: Snapshot
    nonfinite: Sequence[NonFinite] = ()
    steps: Sequence[Step] = ()
    errors: Sequence[Error] = ()
    out_of_memory: Sequence[OutOfMemory] = ()
    lookups: Sequence[CacheLookup] = ()
    ended: bool = False
    """Whether the process has ended, and not as it should."""

    @property
    def compile_seconds(self) -> dict[str, float]:
        """Seconds that the compiler took, by function; what was loaded from the persistent cache is not in it."""
        found = {each.name: each.phase_seconds.get("compile", 0.0) for each in self.snapshot.functions}
        return {name: seconds for name, seconds in found.items() if 0 < seconds < math.inf}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a kind of finding has to say; the fields are those of `Finding`."""

    summary: str
    advice: str
    function: str = UNKNOWN
    subject: str = ""
    severity: str = "warning"
    where: str | None = None
    count: int = 0
    seconds: float = 0.0
    saves_seconds: float | None = None
    bytes: int | None = None
    since: float = 0.0
    evidence: Sequence[str] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
