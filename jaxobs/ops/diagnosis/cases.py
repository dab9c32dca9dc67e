"""What speaks for each fault, and what became of that."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxobs.ops.diagnosis import kinds, weights
from jaxobs.ops.diagnosis.evidence import LINE, RAISED, Observation
from jaxobs.ops.diagnosis.knowledge import ENDED, IMPACTS, AnySign, Knowledge

ANY_EXCEPTION = 3
"""How general a fault is that any exception shows."""
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
    shown: dict[int, tuple[AnySign, ...]] = field(default_factory=dict)
    """By `id` of an observation: the signs in it."""
    borne_out: float = 0.0
    """Confidence where it has no strong signs of its own: weak ones of a story, or known incidents, decided."""
    explained_by: list[str] = field(default_factory=list)
    because: str = ""

    @property
    def onset(self) -> Observation:
        """Its first sign."""
        return self.strong[0]

    @property
    def is_general(self) -> bool:
        """Whether all that shows it is that something was raised, whatever it was: in a log or as recorded."""
        raised = [each.kind == LINE or each.name.startswith("error:") for each in self.strong]
        return self.known.general >= ANY_EXCEPTION and bool(raised) and all(raised)

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
    def confidence(self) -> float:
        """How often a fault with such signs is the cause, as a share. Different signs add up, further ones by half."""
        if self.borne_out:
            return self.borne_out
        if self.is_general:
            return weights.share(self.id, weights.KIND if kinds.found(self.id, self.strong) else weights.FAULT)
        best: dict[AnySign, float] = {}
        for each in self.strong or self.weak:
            for sign in self.shown[id(each)]:
                most = weights.WATCHED if each.data.get("severity") == "info" else 1.0
                best[sign] = max(best.get(sign, 0.0), min(weights.weight(self.id, sign), most))
        doubt = 1.0
        for rank, one in enumerate(sorted(best.values(), reverse=True)):
            doubt *= 1.0 - one / (1 + bool(rank))
        return round(1.0 - doubt, 2)

    def weight(self, one: Observation) -> float | None:
        """Returns the weight of the best sign in an observation; None if it has none."""
        return max((weights.weight(self.id, sign) for sign in self.shown.get(id(one), ())), default=None)

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
