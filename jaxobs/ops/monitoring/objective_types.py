"""What a service level objective is, as plain data: which share of what happens has to be good, over how long."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from jaxobs.ops.monitoring.rule_types import Step

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
PERIODS = ("7d", "14d", "28d", "30d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guide:
    """The part of the runbook that is about this objective."""

    impact: str
    diagnosis: tuple[Step, ...]
    mitigation: tuple[str, ...]
    look_alikes: tuple[tuple[str, str, str], ...]
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """Series for promtool: what is added to each in a minute while all is well, and while it is not."""

    good: Mapping[str, int]
    bad: Mapping[str, int]
    share: Decimal
    """What share is bad then."""
    delay: int = 0
    """Minutes from the start of the series until they count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """One objective. `bad` and `total` are what happened within five minutes, and leave the label `job`."""

    name: str
    """Lower case with hyphens; the value of the label `slo`."""
    title: str
    description: str
    service: str
    """`training` or `serving`, or what the user calls it."""
    target: Decimal
    """Share that has to be good, below 1."""
    bad: str
    total: str
    unit: str
    """What is counted: `requests`, `seconds`, `steps`."""
    least: Decimal
    """Fewer than this in the long window tell nothing: no alert."""
    period: str = "28d"
    denominator: str = ""
    """A sentence: all that is counted, and what is not."""
    absent: str = ""
    """A sentence: what it means when there is nothing to count."""
    guide: Guide | None = None
    """None for an objective of the user's, whose alert leads to the general page."""
    example: Example | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    """Further ones of its alerts, for routing."""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"Objective {self.name!r}: names are lower case with hyphens, such as `step-success`.")
        if not 0 < self.target < 1:
            raise ValueError(f"Objective `{self.name}` has the target {self.target}: it must be between 0 and 1.")
        if self.period not in PERIODS:
            raise ValueError(
                f"Objective `{self.name}` has the period {self.period!r}: it must be one of {', '.join(PERIODS)}."
            )

    @property
    def budget(self) -> Decimal:
        """Share that may be bad."""
        return 1 - self.target

    def text(self) -> str:
        """What is good, what it is a share of, how much has to happen, and what an absence means; of one of the user's,
        its description."""
        if not self.denominator:
            return self.description
        least = f"With fewer than {self.least:,} {self.unit} in the long window of an alert, it does not fire."
        return " ".join(each for each in (self.description, self.denominator, least, self.absent) if each)

    @property
    def alert(self) -> str:
        """Name of its alert."""
        return "JaxSlo" + "".join(part.capitalize() for part in self.name.split("-")) + "Burn"
