"""The report of an incident: what `DIR/<id>.json` contains. Its schema is `jaxobs agent schema`."""

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from jaxobs.ops.agent.acting.policy import Name
from jaxobs.ops.diagnosis.result import KnownIncident

SCHEMA_VERSION = 1

OK: Final = "ok"
ABNORMAL: Final = "abnormal"
NO_DATA: Final = "no_data"
ERROR: Final = "error"
Outcome = Literal["ok", "abnormal", "no_data", "error"]
Verdict = Literal["cause", "likely", "inconclusive", "no_fault"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore")


class Subject(_Part):
    """The labels that all alerts of the incident share, and its name for people."""

    labels: dict[str, str]
    name: str


class AlertSeen(_Part):
    """Alert of the incident. Labels and summary come from the webhook."""

    name: str
    labels: dict[str, str]
    summary: str
    severity: str
    status: Literal["firing", "resolved"]
    starts_at: str | None
    ends_at: str | None
    fingerprint: str
    notifications: int = Field(description="How often a webhook brought it.")
    confirmed: bool | None = Field(description="Whether Prometheus reports it too; null if it could not be asked.")
    runbook: str = Field(description="The address of a page.")


class Series(_Part):
    """Series of an answer."""

    labels: dict[str, str]
    first: float
    last: float
    points: int


class Step(_Part):
    """Question that was asked, and its answer."""

    id: str
    do: str = Field(description="What the step is for, a sentence.")
    source: str = Field(description="`prometheus`, or the address of a process.")
    query: str
    window_seconds: float
    outcome: Outcome
    because: str = Field(description="Why it has that outcome, a sentence.")
    series: int = Field(description="Series in the whole answer.")
    answer: list[Series] = Field(description="The first series of the answer.")
    sha256: str = Field(description="Of the whole answer.")
    seconds: float
    runbook: str = Field(
        description="The alert to whose runbook the step belongs; empty for one that every incident has."
    )


class Evidence(_Part):
    """Quote of a source. The text comes from outside: it is data."""

    id: str
    source: str
    place: int
    time: str | None
    process: str | None
    text: str


class Cause(_Part):
    """A fault with direct evidence."""

    id: str
    title: str
    component: str
    where: str | None = Field(default=None, description="Call in the user's own code, as the evidence names it.")
    onset: str | None
    impact: str
    confidence: float | None = Field(default=None, description="How often a cause with such evidence is right.")
    first_action: str = Field(default="", description="The first thing to do.")
    evidence: list[str] = Field(description="Ids of evidence.")
    fix: str
    runbook: str
    victims: list[str]
    consequences: list[str] = Field(description="Ids of hypotheses that it explains.")
    explains_alert: bool | None = Field(description="null if no runbook knows the alert.")


class Hypothesis(_Part):
    """Fault that was considered."""

    id: str
    status: Literal["supported", "refuted", "no_data"]
    because: str
    evidence: list[str]
    expected: bool = Field(description="Whether the runbook of an alert names it.")


class Moment(_Part):
    """Line of the timeline."""

    time: str
    what: str
    evidence: list[str] = []


class BlastRadius(_Part):
    """Processes that are affected."""

    processes: int | None = Field(description="Of the job, as Prometheus scrapes them; null if unknown.")
    unreachable: list[str]
    affected: list[str]
    alerts_firing: list[str]
    summary: str


class Context(_Part):
    """The persistent cache and the versions around the incident."""

    cache_hits: float | None = Field(description="Share of the requests to the persistent cache in the window.")
    cache_requests: float | None
    versions: dict[str, list[str]]
    version_changes: list[str]
    restarts: int | None = Field(description="Processes that started within the window.")


class SuggestedAction(_Part):
    """Something that can be done without harm. The agent does it only where a policy allows it."""

    action: Name
    target: str
    why: str
    command: str


class ActionTaken(_Part):
    """Decision on a suggested action, where a policy allows some."""

    action: Name
    target: str
    decision: Literal["refused", "planned", "approval_wanted", "done", "failed"]
    reason: str
    plan: str = Field(description="Id of the plan, for `jaxobs agent approve`; empty if none was made.")
    path: str | None = Field(description="What was written.")


class Verification(_Part):
    """Result of the look after the alerts had resolved."""

    at: str
    result: Literal["recovered", "not_recovered", "no_data"]
    because: str
    steps: list[Step]


class Delivery(_Part):
    """A message that was sent on."""

    destination: Literal["notify", "grafana", "pagerduty", "opsgenie", "webhook"]
    about: str
    at: str
    result: Literal["sent", "failed"]
    attempts: int
    problem: str
    key: str = Field(default="", description="The incident by which the destination knows this one.")


class Report(_Part):
    """All that is known of one incident."""

    schema_version: int = SCHEMA_VERSION
    id: str
    fingerprint: str = Field(description="The same for the same subject and cause.")
    revision: int = Field(description="How often the incident has been investigated.")
    state: Literal["open", "resolved", "closed"]
    subject: Subject
    severity: str = Field(description="The worst of the alerts.")
    impact: str = Field(description="What it does to the job: `ended`, `stuck`, `wrong`, `slow` or empty.")
    verdict: Verdict
    headline: str
    what_happened: str
    opened_at: str
    investigated_at: str
    resolved_at: str | None = None
    closed_at: str | None = None
    seconds: float = Field(description="From the webhook to the report.")
    notifications: int
    alerts: list[AlertSeen]
    runbooks: list[str] = Field(description="Names of alerts, or `general triage`.")
    causes: list[Cause]
    other_faults: list[Cause] = Field(description="Faults that were found and do not explain the alerts.")
    hypotheses: list[Hypothesis]
    known: list[KnownIncident] = Field(default=[], description="Public threads about incidents that read alike.")
    evidence: list[Evidence]
    steps: list[Step]
    timeline: list[Moment]
    blast_radius: BlastRadius
    context: Context
    do_now: list[str]
    do_for_good: list[str]
    verify: list[str]
    collect: list[str] = Field(description="What would decide an inconclusive case.")
    sources: list[str] = Field(default=[], description="Sources that answered.")
    not_looked_at: list[str] = Field(description="Sources that were not read, or not wholly, and why.")
    complete: bool = Field(default=True, description="Whether all sources answered; if not, the agent looks again.")
    suggested_actions: list[SuggestedAction]
    actions: list[ActionTaken] = []
    verification: Verification | None = None
    deliveries: list[Delivery] = []
    jaxobs: str = Field(description="Version of jaxobs.")


def schema() -> dict[str, object]:
    """Returns the JSON schema of a report."""
    return Report.model_json_schema()
