"""What speaks for each fault, and what became of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxobs.ops.diagnosis.evidence import RAISED, Observation
from jaxobs.ops.diagnosis.knowledge import ENDED, IMPACTS, Knowledge

ONE_MESSAGE = 3
"""Lines within which a cause may come behind its effect: several layers tell of one event, each in its time."""


@dataclass(slots=True)
class Case:
    """What speaks for one fault, and what became of it."""

    id: str
    known: Knowledge
    strong: list[Observation] = field(default_factory=list)
    weak: list[Observation] = field(default_factory=list)
    passed: list[Observation] = field(default_factory=list)
    """Signs after which the process went on."""
    ordinary: list[Observation] = field(default_factory=list)
    """What is no sign of it in view of the rest."""
    against: list[Observation] = field(default_factory=list)
    explained_by: list[str] = field(default_factory=list)
    because: str = ""

    @property
    def onset(self) -> Observation:
        """Its first sign."""
        return self.strong[0]

    @property
    def stands(self) -> bool:
        """Whether it has a sign, and nothing rules it out."""
        return bool(self.strong) and not self.against

    @property
    def impact(self) -> int:
        """How bad it is: an exception that nothing caught ends a process, whatever it is about."""
        raised = self.strong and self.onset.name == RAISED and "caught" not in self.onset.data
        return IMPACTS.index(ENDED if raised else self.known.impact)

    @property
    def suspected(self) -> bool:
        """Whether something speaks for it that other faults show as well, and nothing against it."""
        return bool(self.weak) and not self.strong and not self.against


def ancestors(case: Case, standing: Mapping[str, Case]) -> set[str]:
    found: set[str] = set()
    left = list(case.explained_by)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += standing[name].explained_by
    return found
