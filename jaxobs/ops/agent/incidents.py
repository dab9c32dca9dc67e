"""An incident while it lasts: its alerts, how often they came, and how far it has got. Plain data, kept on disk."""

from collections.abc import Iterable
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from jaxobs.facts.verdicts import SEVERITIES
from jaxobs.ops.agent.notifications import FIRING, RESOLVED, Alert
from jaxobs.ops.agent.subjects import Subject

MOST_ALERTS = 100
"""Alerts that an incident keeps."""

MOST_CHECKS = 3
"""Verifications of an incident that do not show a recovery; each is later than the one before."""
MOST_GIVING_WAY = 20
MOST_LOOKS = 3
"""Investigations of an incident that remains inconclusive or incomplete, but for those that a new alert causes."""
AGAIN = 60.0
"""Seconds until the second investigation; twice as many until the third."""

WAITING: Final = "waiting"
REPORTED: Final = "reported"
RESOLVING: Final = "resolving"
"""Phases: to be investigated; investigated, and its alerts fire; to be verified, for all have resolved."""


def rank(severity: str | None) -> int:
    """Returns 0 for the worst severity, and more for lesser ones."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


class Kept(BaseModel):
    """Alert of an incident, as it is kept."""

    model_config = ConfigDict(extra="forbid")

    status: Literal["firing", "resolved"]
    labels: dict[str, str]
    summary: str
    starts_at: float | None
    ends_at: float | None
    fingerprint: str
    notifications: int = 1

    @property
    def name(self) -> str:
        """Name of the alert's rule."""
        return self.labels.get("alertname", "")


class Incident(BaseModel):
    """All alerts on one subject, from the first that fires until the last has resolved."""

    model_config = ConfigDict(extra="forbid")

    id: str
    subject: list[tuple[str, str]]
    phase: Literal["waiting", "reported", "resolving"] = WAITING
    opened_at: float
    resolved_at: float | None = None
    due_at: float = 0.0
    """Seconds since the epoch at which it is worked on."""
    asked_at: float = 0.0
    """Time of the webhook that asks for the next investigation."""
    seen_at: float = 0.0
    """Time of the last webhook."""
    again_at: float | None = None
    """Time of the next look at an inconclusive incident whose alerts fire."""
    revision: int = 0
    notifications: int = 0
    checks: int = 0
    """Verifications that did not show a recovery."""
    checked_at: float | None = None
    """Time of the last of them."""
    left_out: int = 0
    """Alerts beyond the bound."""
    unconfirmed: bool = False
    """Whether Prometheus, when the agent asked it, reported none of its alerts."""
    alerts: dict[str, Kept] = {}
    """Alerts by fingerprint."""

    def whose(self) -> Subject:
        """Returns the labels that its alerts share."""
        return Subject(tuple(self.subject))

    def take(self, alerts: list[Alert], now: float, settle: float) -> None:
        """Updates the incident with what a webhook brought.

        Args:
          settle: seconds between the end of the last alert and the verification.
        """
        self.notifications += 1
        self.seen_at = now
        is_new = False
        for alert in alerts:
            kept = self.alerts.get(alert.fingerprint)
            if kept is None:
                if alert.status == RESOLVED or len(self.alerts) >= MOST_ALERTS:
                    self.left_out += alert.status == FIRING
                    continue
                is_new = is_new or not any(old.name == alert.name for old in self.alerts.values())
                self.alerts[alert.fingerprint] = Kept(
                    status="firing", labels=dict(alert.labels), summary=alert.summary, starts_at=alert.starts_at,
                    ends_at=None, fingerprint=alert.fingerprint,
                )  # fmt: skip
                continue
            kept.notifications += 1
            kept.status = "resolved" if alert.status == RESOLVED else "firing"
            kept.ends_at = (alert.ends_at or now) if alert.status == RESOLVED else None
            kept.summary = alert.summary or kept.summary
        self._move(is_new, now, settle)

    def _move(self, is_new: bool, now: float, settle: float) -> None:
        fires = any(each.status == FIRING for each in self.alerts.values())
        if not fires and self.phase == REPORTED:
            self.phase, self.resolved_at, self.due_at = RESOLVING, now, now + settle
        elif not fires and self.phase == WAITING:
            self.resolved_at = now
        elif fires:
            self.resolved_at, self.checked_at, self.checks = None, None, 0
            if self.phase == RESOLVING:
                self.phase = REPORTED
            if is_new:
                self.phase, self.due_at, self.asked_at = WAITING, now, now

    def reported(self, now: float, settle: float, verdict: str, *, complete: bool = True) -> None:
        """Notes an investigation; what is inconclusive, or not complete, is looked at again later."""
        self.revision += 1
        self.phase = REPORTED
        looks_again = (verdict == "inconclusive" or not complete) and self.revision < MOST_LOOKS
        self.again_at = now + AGAIN * self.revision if looks_again else None
        if self.resolved_at is not None:
            self.phase, self.due_at = RESOLVING, now + settle

    def names(self) -> list[str]:
        """Returns the alerts' names: those that fire first, then the worst, then in the order in which they came."""
        in_order = sorted(
            self.alerts.values(), key=lambda each: (each.status != FIRING, rank(each.labels.get("severity")))
        )
        return list(dict.fromkeys(each.name for each in in_order if each.name))

    def instances(self) -> list[str]:
        """Returns the processes that alerts name."""
        return list(
            dict.fromkeys(each.labels["instance"] for each in self.alerts.values() if "instance" in each.labels)
        )

    def began(self) -> float:
        """Returns when the first alert began, as far as it can be believed."""
        told = [each.starts_at for each in self.alerts.values() if each.starts_at is not None]
        return min((each for each in told if each <= self.opened_at + 300), default=self.opened_at)


def give_way(incidents: Iterable[Incident], now: float) -> None:
    """Closes the oldest of those that nobody but a webhook knows of: there is no room for more incidents.

    Forged ones would never resolve, and keep true ones out.
    """
    alone = [each for each in incidents if each.phase == REPORTED and each.unconfirmed]
    for each in sorted(alone, key=lambda each: each.opened_at)[:MOST_GIVING_WAY]:
        each.phase, each.resolved_at, each.due_at, each.checks = RESOLVING, now, now, MOST_CHECKS
