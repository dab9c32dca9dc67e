"""Alerts, recording rules, runbooks and promtool cases as plain data, from which files are generated.

An expression is PromQL with two kinds of gaps. `{@}` or `{@, loop!=""}` is where the matchers go that choose the
targets: the job's in a rule, the dashboard's variables in a panel; `{@fn}` where functions are chosen as well. `<name>`
is the value of a threshold.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from jaxobs.facts.verdicts import SEVERITIES

ORDER = ("availability", "saturation", "performance", "capacity", "info")
"""The concerns of alerts, in the order in which files and pages list them."""

NAME = re.compile(r"([A-Z]+[a-z0-9]+)+")
"""Names that mixtool takes for camel case."""

CASE_KINDS = ("firing", "pending", "healthy", "recovering", "counter_reset", "target_gone", "job_finished")
"""Kinds of promtool cases. Each alert has the first four and `target_gone`; one on a counter, `counter_reset`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A figure that a user may change."""

    value: float
    unit: str
    """`seconds`, `bytes`, `ratio`, `count`, ...: as in the catalogue."""
    why: str
    """The reason for the value, as a sentence: a capacity, an objective, a source."""
    least: float = 0.0
    most: float = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of a diagnosis: something to run or to ask, and the meaning of each answer."""

    do: str
    """A sentence."""
    command: str = ""
    """For a shell."""
    query: str = ""
    """PromQL with the gaps of an expression."""
    answers: tuple[tuple[str, str], ...] = ()
    """Pairs: an observation, and its meaning or the place to go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runbook:
    """Instructions for someone who is woken at three: Markdown without headings, in self-contained sentences."""

    meaning: str
    impact: str
    diagnosis: tuple[Step, ...]
    mitigation: tuple[str, ...]
    """In the order in which to try them."""
    look_alikes: tuple[tuple[str, str, str], ...]
    """Faults that look alike: what, how to distinguish it, where to go instead (an alert's name, or a page)."""
    evidence: tuple[str, ...]
    """Things to attach when the incident is handed on."""
    verify: str
    """Sentences that say how to know that the fault is over."""
    gpu: str = ""
    """Sentences about GPUs; empty if nothing differs there."""
    tpu: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """An alert that a case expects: its labels without name and severity, and the figures in its description."""

    labels: Mapping[str, str]
    values: tuple[str, ...] = ()
    """Texts that each `{{ ... $value ... }}` or other template that is not a label prints, in order."""
    culprit: str = ""
    """Label that the query `culprit` finds; empty if it finds nothing."""
    told_at: str = ""
    """Time at which the condition last held, if the alert only keeps firing; its annotations are of that time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A promtool test: scraped series, and the alerts that fire then."""

    kind: str
    series: Mapping[str, str]
    """Values by series, in promtool's notation; matchers of targets are written out."""
    at: str
    """Time of the look, from the start of the series."""
    fires: tuple[Fired, ...] = ()
    interval: str = "1m"

    def __post_init__(self) -> None:
        if self.kind not in CASE_KINDS:
            raise ValueError(f"A case has kind {self.kind!r}. Kinds: {', '.join(CASE_KINDS)}.")


class Texts(Protocol):
    """Source of an alert's runbook and cases: both are read only when they are asked for."""

    def runbook(self) -> Runbook:
        """The runbook."""

    def cases(self) -> tuple[Case, ...]:
        """The promtool cases."""


@dataclass(frozen=True, slots=True)
class Given:
    """Runbook and cases that are made with their alert."""

    book: Runbook
    tests: tuple[Case, ...]

    def runbook(self) -> Runbook:
        """The runbook."""
        return self.book

    def cases(self) -> tuple[Case, ...]:
        """The promtool cases."""
        return self.tests


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An alerting rule with all that belongs to it."""

    name: str
    severity: str
    """Severity, one of `SEVERITIES`: `critical` pages a person, `warning` opens a ticket, `info` is not routed, for it
    inhibits or explains others."""
    concern: str
    """Concern of the alert: an entry of `ORDER`."""
    summary: str
    """A sentence without templates."""
    description: str
    """Sentences with templates: which function, which process, how much."""
    expr: str
    for_: str
    panel: tuple[str, str]
    """Dashboard and key of the panel that shows it."""
    texts: Texts
    """Source of the runbook and the cases."""
    thresholds: Mapping[str, Threshold] = field(default_factory=dict)
    keep_firing_for: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Static labels beyond the severity."""
    extended: bool = False
    """Whether the alert is generated only for sites that switch it on."""
    culprit: str = ""
    """Query for `{{ with culprit }}` in the description of an alert about a job: what it finds in that job is named."""
    inhibits: tuple[str, ...] = ()
    """Alerts on the same job that have the same mechanism, and fire with this one or later: they send nothing."""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"Alert `{self.name}` is not in camel case, such as `JaxGoodputLow`.")
        if self.severity not in SEVERITIES:
            raise ValueError(
                f"Alert `{self.name}` has severity {self.severity!r}: it must be one of {', '.join(SEVERITIES)}."
            )
        if self.concern not in ORDER:
            raise ValueError(f"Alert `{self.name}` has concern {self.concern!r}: it must be one of {', '.join(ORDER)}.")

    @property
    def runbook(self) -> Runbook:
        """Instructions for whoever the alert wakes."""
        return self.texts.runbook()

    @property
    def cases(self) -> tuple[Case, ...]:
        """The promtool cases.

        Raises:
          MissingExtraError: PyYAML is not installed.
        """
        return self.texts.cases()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A recording rule, named `level:metric:operations`: the level names the labels that are kept."""

    name: str
    expr: str
    why: str
    """Readers of the series and the reason to record it, as a sentence."""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Recording rules that are evaluated one after the other."""

    name: str
    rules: tuple[Recording, ...]
    interval: str = "1m"
