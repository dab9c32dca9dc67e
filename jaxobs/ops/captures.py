"""Asks a process for a capture, and waits for it."""

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Literal

from jaxobs.base import json_lines
from jaxobs.facts.actions import Action
from jaxobs.views import access, client

ANSWER_SECONDS = 75.0
"""A process answers about `memory` when that has ended, for which it waits a minute."""
_MOST_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a capture."""

    result: Literal["done", "failed"]
    detail: str = ""
    path: str | None = None
    """Path of what was written, on the machine where the work was done."""


def failed(detail: str) -> Outcome:
    """Returns the outcome of what did not work, with why, as a sentence."""
    return Outcome("failed", detail)


def capture(
    url: str, action: str, parameters: Mapping[str, Any], token_variable: str, seconds: float,
    stopped: Callable[[], bool],
) -> Outcome:  # fmt: skip
    """Has a process make a capture, and waits for its end, until `stopped` and `seconds` at most."""
    token = os.environ.get(token_variable, "")
    if not token:
        return failed(f"The variable {token_variable} with the processes' token is not set.")
    code, body = _post(f"{url}/api/v1/actions/{action}", parameters, token)
    if code == 404:
        return failed("It accepts no actions: set `actions` and `action_token` in the process.")
    if code not in (200, 202):
        return failed(f"The process answered {code}: {body.get('error') or body.get('detail') or ''}"[:400])
    if code == 200:
        return _outcome(body)
    name = str(body.get("name", ""))
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(str(body.get("events", ""))).query))
    since = int(query.get("since", "0")) if query.get("since", "0").isdigit() else 0
    until = time.monotonic() + seconds
    while time.monotonic() < until and not stopped():
        try:
            page = client.fetch_events(url, since=since, kind="action")
        except (client.EndpointUnreachableError, client.NotAnEndpointError) as error:
            return failed(f"The process no longer answers: {error.brief}.")
        for event in page.events:
            if isinstance(event, Action) and (
                event.result != "done" or (event.path and os.path.basename(event.path.rstrip("/")) == name)
            ):
                return _outcome({each: getattr(event, each) for each in ("result", "detail", "path")})
        time.sleep(0.2)
    why = "it was stopped" if stopped() else f"it had not ended after {seconds:.0f} s"
    return failed(f"The agent waited no longer: {why}.")


def _outcome(body: Mapping[str, Any]) -> Outcome:
    if body.get("result") != "done":
        return failed(str(body.get("detail") or body.get("result")))
    return Outcome("done", str(body.get("detail") or ""), str(body.get("path") or "") or None)


def _post(url: str, body: Mapping[str, Any], token: str) -> tuple[int, dict[str, Any]]:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    asked = urllib.request.Request(url, json.dumps(body).encode(), headers, method="POST")
    try:
        with access.opener(url, access.NoRedirect).open(asked, timeout=ANSWER_SECONDS) as answer:
            code, text = answer.status, answer.read(_MOST_BYTES)
    except urllib.error.HTTPError as error:
        with error:
            code, text = error.code, error.read(_MOST_BYTES)
    except (OSError, ValueError, HTTPException) as error:
        return 0, {"error": str(getattr(error, "reason", error))[:200]}
    try:
        found = json_lines.loads(text)
    except ValueError:
        found = {}
    return code, found if isinstance(found, dict) else {}
