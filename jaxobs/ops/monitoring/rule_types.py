"""What an alert, a recording rule, a runbook and a promtool case are: plain data, from which files are generated.

An expression is PromQL with two kinds of gaps. `{@}` or `{@, loop!=""}` is where the matchers go that choose the
targets: the job's in a rule, the dashboard's variables in a panel; `{@fn}` where functions are chosen as well. `<name>`
is the value of a threshold.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

SEVERITIES = ("critical", "warning", "info")
"""`critical` pages a person, `warning` makes a ticket, `info` is not routed: it inhibits or explains others."""

ORDER = ("availability", "saturation", "performance", "capacity", "info")
"""The concerns of alerts, in the order in which files and pages list them."""

NAME = re.compile(r"([A-Z]+[a-z0-9]+)+")
"""What mixtool takes for a name in camel case."""

CASE_KINDS = ("firing", "pending", "healthy", "recovering", "counter_reset", "target_gone", "job_finished")
"""What a promtool case shows. Every alert has the first four and `target_gone`; one on a counter, `counter_reset`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A figure that a user may change."""

    value: float
    unit: str
    """`seconds`, `bytes`, `ratio`, `count`, ...: as in the catalogue."""
    why: str
    """Where the value comes from, as a sentence: a capacity, an objective, a source."""
    least: float = 0.0
    most: float = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a diagnosis: something to run or to ask, and what each answer means."""

    do: str
    """A sentence."""
    command: str = ""
    """For a shell."""
    query: str = ""
    """PromQL with the gaps of an expression."""
    answers: tuple[tuple[str, str], ...] = ()
    """Pairs of what may be seen, and what it means or where to go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runbook:
    """What someone who is woken at three needs. Markdown, without headings; sentences that stand for themselves."""

    meaning: str
    impact: str
    diagnosis: tuple[Step, ...]
    mitigation: tuple[str, ...]
    """In the order in which to try them."""
    look_alikes: tuple[tuple[str, str, str], ...]
    """What this is not: what looks alike, how to tell it apart, where to go instead (an alert's name, or a page)."""
    evidence: tuple[str, ...]
    """What to attach when handing it on."""
    verify: str
    """How to know that it is over."""
    gpu: str = ""
    """What differs on GPUs, where something does."""
    tpu: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """An alert that a case expects: its labels without name and severity, and the figures in its description."""

    labels: Mapping[str, str]
    values: tuple[str, ...] = ()
    """What each `{{ ... $value ... }}` or other template that is no label prints, in order."""
    told_at: str = ""
    """When its condition last held, where it only keeps firing; annotations are those of that time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One promtool test: what a Prometheus has scraped, and what fires then."""

    kind: str
    series: Mapping[str, str]
    """Values by series, in promtool's notation; matchers of targets are written out."""
    at: str
    """When it is looked, from the start of the series."""
    fires: tuple[Fired, ...] = ()
    interval: str = "1m"

    def __post_init__(self) -> None:
        if self.kind not in CASE_KINDS:
            raise ValueError(f"A case has kind {self.kind!r}. Kinds: {', '.join(CASE_KINDS)}.")


class Texts(Protocol):
    """Where the runbook and the cases of an alert come from: both are read only when they are asked for."""

    def runbook(self) -> Runbook:
        """The runbook."""

    def cases(self) -> tuple[Case, ...]:
        """The promtool cases."""


@dataclass(frozen=True, slots=True)
class Given:
    """Texts that are made with their alert."""

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
    """One alerting rule with all that belongs to it."""

    name: str
    severity: str
    concern: str
    """One of `ORDER`."""
    summary: str
    """A sentence without templates."""
    description: str
    """Sentences with templates: which function, which process, how much."""
    expr: str
    for_: str
    panel: tuple[str, str]
    """Dashboard and key of the panel that shows it."""
    texts: Texts
    """Its runbook and its cases."""
    thresholds: Mapping[str, Threshold] = field(default_factory=dict)
    keep_firing_for: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Static ones beyond the severity."""

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
        """What to do about it."""
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
    """One recording rule: `level:metric:operations`, where the level names the labels that are kept."""

    name: str
    expr: str
    why: str
    """Who reads it, and why it is recorded, as a sentence."""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Recording rules that are evaluated one after the other."""

    name: str
    rules: tuple[Recording, ...]
    interval: str = "1m"
