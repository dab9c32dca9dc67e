"""A scene: how a process is, with the latest of its rarer events."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jaxobs.facts.cache import CacheLookup
from jaxobs.facts.compilations import Compilation
from jaxobs.facts.errors import Error
from jaxobs.facts.events import Event
from jaxobs.facts.numbers import NonFinite
from jaxobs.facts.out_of_memory import OutOfMemory
from jaxobs.facts.snapshot import Snapshot
from jaxobs.facts.steps import Step

KINDS: tuple[type[Event], ...] = (NonFinite, Step, Error, OutOfMemory, CacheLookup, Compilation)
"""The events that a scene is made of; of compilations, only long ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A process at one moment, as it knows itself. Events are the latest of their kind, oldest first."""

    snapshot: Snapshot
    nonfinite: Sequence[NonFinite] = ()
    steps: Sequence[Step] = ()
    errors: Sequence[Error] = ()
    out_of_memory: Sequence[OutOfMemory] = ()
    lookups: Sequence[CacheLookup] = ()
    compilations: Sequence[Compilation] = ()
    ended: bool = False
    """Whether the process has ended, and not as it should."""

    @property
    def time(self) -> float:
        """Time of the snapshot."""
        return self.snapshot.time

    @property
    def compile_seconds(self) -> dict[str, float]:
        """Seconds that the compiler took, by function; what was loaded from the persistent cache is not in it."""
        found = {each.name: each.phase_seconds.get("compile", 0.0) for each in self.snapshot.functions}
        return {name: seconds for name, seconds in found.items() if 0 < seconds < math.inf}
