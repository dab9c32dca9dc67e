"""Service level objectives as plain data: the share of what happens that has to be good, over a period."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from jaxobs.ops.monitoring.rule_types import Step

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
PERIODS = ("7d", "14d", "28d", "30d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guide:
    """The part of a runbook that is about the objective alone."""

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
    """Share that is bad in a minute of `bad`."""
    delay: int = 0
    """Minutes from the start of the series until the objective counts them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """An objective. `bad` and `total` count the last five minutes, and leave the label `job`."""

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
    """The counted things: `requests`, `seconds`, `steps`."""
    least: Decimal
    """Number in the long window below which no alert fires."""
    period: str = "28d"
    denominator: str = ""
    """A sentence: all that is counted, and the exceptions."""
    absent: str = ""
    """A sentence: how a job is judged in which there is nothing to count."""
    guide: Guide | None = None
    """None for an objective of the user's, whose alert leads to the general page."""
    example: Example | None = None
    culprit: tuple[str, str] = ("", "")
    """Label and counter: the alerts name the value of the label by which the counter rose most."""
    inhibits: tuple[str, ...] = ()
    """As of an `Alert`, while the objective's alert pages."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Further labels of the alerts, for routing."""
    pages: bool = True
    """Whether the fastest alerts page a person; else all of them open tickets."""
    extended: bool = False
    """Whether the alerts are generated only for sites that switch them on; what is recorded for panels always is."""

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
        """Share that may be bad: 1 less the target."""
        return 1 - self.target

    def text(self) -> str:
        """Returns sentences: what is good, the share of what, how much has to happen, and how an absence is judged.

        For an objective of the user's it is the description alone.
        """
        if not self.denominator:
            return self.description
        least = f"With fewer than {self.least:,} {self.unit} in the long window of an alert, it does not fire."
        return " ".join(each for each in (self.description, self.denominator, least, self.absent) if each)

    @property
    def alert(self) -> str:
        """Name of the objective's alert."""
        return "JaxSlo" + "".join(part.capitalize() for part in self.name.split("-")) + "Burn"
