"""Sends messages on, over HTTP: a destination that is slow, wrong or gone costs a few bounded attempts."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException

from jaxobs.facts.events import timestamp
from jaxobs.ops.agent import payloads
from jaxobs.ops.agent.payloads import CLOSED, Message, Payload
from jaxobs.ops.agent.report import Delivery
from jaxobs.ops.diagnosis.evidence import clean
from jaxobs.ops.in_time import Deadline
from jaxobs.views import access

TIMEOUT = 2.0
ATTEMPTS = 3
PAUSE = 1.0
"""Seconds before the second attempt; twice as many before the third."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Receiver of messages: its address, and the form that it takes."""

    name: str
    address: str
    payload: Payload
    headers: Mapping[str, str] = field(default_factory=dict)
    closing: str = ""
    """Address of a message that closes an incident, with `{key}` in it, if it is another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Destinations:
    """Addresses and keys of those who get results; empty for nowhere."""

    notify: str = ""
    """A webhook that takes Slack's payload."""
    grafana: str = ""
    """The address of a Grafana."""
    grafana_token: str = ""
    pagerduty: str = "https://events.pagerduty.com"
    pagerduty_key: str = ""
    """Integration key of a service, for Events API v2."""
    opsgenie: str = "https://api.opsgenie.com"
    opsgenie_key: str = ""
    webhook: str = ""
    """A webhook that takes JSON of the template's form."""
    webhook_token: str = ""
    template: str = json.dumps({name: f"${name}" for name in payloads.FIELDS})
    url: str = ""
    """Address at which people reach the agent; without it, nothing links to reports."""
    per_minute: int = 10
    """Messages that each gets in a minute."""
    gather: float = 5.0
    """Seconds for which a message waits for others of its cause."""

    def named(self) -> Iterator[Destination]:
        """Yields those that are given."""
        if self.notify:
            yield Destination(name="notify", address=self.notify, payload=payloads.slack_payload)
        if self.grafana:
            yield Destination(name="grafana", address=f"{self.grafana.rstrip('/')}/api/annotations",
                              payload=payloads.annotation, headers=_bearer(self.grafana_token))  # fmt: skip
        if self.pagerduty_key:
            yield Destination(name="pagerduty", address=f"{self.pagerduty.rstrip('/')}/v2/enqueue",
                              payload=payloads.pagerduty(self.pagerduty_key))  # fmt: skip
        if self.opsgenie_key:
            alerts = f"{self.opsgenie.rstrip('/')}/v2/alerts"
            yield Destination(name="opsgenie", address=alerts, payload=payloads.opsgenie,
                              headers={"Authorization": f"GenieKey {self.opsgenie_key}"},
                              closing=f"{alerts}/{{key}}/close?identifierType=alias")  # fmt: skip
        if self.webhook:
            yield Destination(name="webhook", address=self.webhook, payload=payloads.templated(self.template),
                              headers=_bearer(self.webhook_token))  # fmt: skip


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def send(message: Message, to: Destination, *, pause: Callable[[float], object] = time.sleep) -> Delivery:
    """Sends a message, and returns what became of it."""
    is_end = message.about == CLOSED and to.closing
    address = to.closing.format(key=message.key) if is_end else to.address
    body = json.dumps(to.payload(message)).encode()
    problem, attempt = "", 0
    for attempt in range(1, ATTEMPTS + 1):
        problem, again = _attempt(address, body, to.headers)
        if not problem or not again:
            break
        if attempt < ATTEMPTS:
            pause(PAUSE * 2 ** (attempt - 1))
    return Delivery.model_validate(
        {
            "destination": to.name, "about": message.about, "at": timestamp(time.time()), "attempts": attempt,
            "result": "failed" if problem else "sent", "problem": problem, "key": message.key,
        }
    )  # fmt: skip


def _attempt(address: str, body: bytes, headers: Mapping[str, str]) -> tuple[str, bool]:
    """Returns the problem, empty if there is none, and whether another attempt may help."""
    direct = [urllib.request.ProxyHandler({})] if access.is_local(address) else []
    opener = urllib.request.build_opener(access.NoRedirect, *direct)
    request = urllib.request.Request(address, data=body, headers={"Content-Type": "application/json", **headers})
    try:
        with Deadline(opener, TIMEOUT), opener.open(request, timeout=TIMEOUT) as answer:
            answer.read1(1024)
            return "", False
    except urllib.error.HTTPError as error:
        error.close()
        return f"HTTP {error.code}", error.code == 429 or error.code >= 500
    except (OSError, ValueError, HTTPException) as error:
        cause = getattr(error, "reason", error)
        return clean(getattr(cause, "strerror", None) or str(cause) or type(cause).__name__), True
