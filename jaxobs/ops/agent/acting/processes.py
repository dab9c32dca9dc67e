"""Asks a process for a capture, and looks first whether it is a good moment."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any

from jaxobs.base import json_lines
from jaxobs.facts.actions import Action
from jaxobs.facts.loops import LoopState
from jaxobs.facts.snapshot import Snapshot
from jaxobs.ops.agent.acting.declarations import Outcome, RefusedError
from jaxobs.views import access, client

ANSWER_SECONDS = 75.0
"""A process answers about `memory` when that has ended, for which it waits a minute."""
LEAST_FREE = 0.02
"""Share of a device's memory that must be free: a capture may allocate a little."""
STILL = 10.0
"""Typical steps without a step mean that the process hangs, or does something else; a capture might wait with it."""
_MOST_BYTES = 2**20


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The token is for the process that was asked."""

    def redirect_request(self, *_: object) -> None:
        return None


def look(url: str) -> Snapshot:
    """The state of a process.

    Raises:
      RefusedError: it does not answer.
    """
    try:
        return client.fetch_snapshot(url)
    except (client.EndpointUnreachableError, client.NotAnEndpointError) as error:
        raise RefusedError(f"The process does not answer as jaxobs does: {error.brief}.") from error


def unsuitable(snapshot: Snapshot, now: float) -> str | None:
    """Why this is no moment for a capture, as a sentence; None where it is one."""
    if snapshot.in_progress:
        return f"The process compiles {len(snapshot.in_progress)} program(s) at the moment. Try again later."
    if snapshot.wall is not None and snapshot.wall.category in ("checkpoint", "cache_load", "trace", "compile"):
        return f"The process is in `{snapshot.wall.category}` at the moment. Try again later."
    for each in snapshot.devices:
        memory = each.memory
        if memory is None or not memory.limit_bytes or memory.in_use_bytes is None:
            continue
        if memory.limit_bytes - memory.in_use_bytes < LEAST_FREE * memory.limit_bytes:
            return f"Less than {LEAST_FREE:.0%} of the memory of {each.device} is free."
    latest = _latest_loop(snapshot)
    if latest is not None and latest.ended is not None and latest.p50_seconds:
        since = now - latest.ended
        if since > max(STILL * latest.p50_seconds, 5.0):
            return (
                f"Its last step of `{latest.name}` ended {since:.0f} s ago, and a typical one takes "
                f"{latest.p50_seconds:.3g} s: it may hang. Look at its stacks instead (`jaxobs explain`)."
            )
    return None


def typical_step(snapshot: Snapshot) -> float | None:
    """Seconds of a typical step of the loop that stepped last."""
    latest = _latest_loop(snapshot)
    return None if latest is None else latest.p50_seconds or latest.mean_seconds


def steps_since(before: Snapshot, after: Snapshot) -> tuple[int, float | None]:
    """How many steps the loop that stepped last has made between two looks, and the seconds of their median."""
    latest = _latest_loop(after)
    if latest is None:
        return 0, None
    known = next((each.steps for each in before.loops if each.name == latest.name), 0)
    made = latest.steps - known
    newest = sorted(latest.recent[-made:]) if made > 0 else []
    return made, newest[len(newest) // 2] if newest else None


def _latest_loop(snapshot: Snapshot) -> LoopState | None:
    return max((each for each in snapshot.loops if each.ended), key=lambda each: each.ended or 0.0, default=None)


def capture(
    url: str, action: str, parameters: Mapping[str, Any], token_variable: str, seconds: float,
    stopped: Callable[[], bool],
) -> Outcome:  # fmt: skip
    """Has a process make a capture, and waits for its end.

    Args:
      action: as the process knows it, `profile` or `memory`.
      token_variable: the environment variable with the process's `action_token`.
      seconds: how long to wait at most.
      stopped: whether to wait no longer.
    """
    token = os.environ.get(token_variable, "")
    if not token:
        return Outcome(result="failed", detail=f"The variable {token_variable} with the processes' token is not set.")
    code, body = _post(f"{url}/api/v1/actions/{action}", dict(parameters), token)
    if code == 404:
        return Outcome(
            result="failed", detail="It accepts no actions: set `actions` and `action_token` in the process."
        )
    if code not in (200, 202):
        said = body.get("error") or body.get("detail") or body.get("message") or ""
        return Outcome(result="failed", detail=f"The process answered {code}: {said}"[:400])
    if code == 200:
        return _outcome(body)
    return _awaited(url, str(body.get("name", "")), str(body.get("events", "")), seconds, stopped)


def _awaited(url: str, name: str, events: str, seconds: float, stopped: Callable[[], bool]) -> Outcome:
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(events).query))
    since = int(query.get("since", "0")) if query.get("since", "0").isdigit() else 0
    until = time.monotonic() + seconds
    while time.monotonic() < until and not stopped():
        try:
            page = client.fetch_events(url, since=since, kind="action")
        except (client.EndpointUnreachableError, client.NotAnEndpointError) as error:
            return Outcome(result="failed", detail=f"The process no longer answers: {error.brief}.")
        for event in page.events:
            if isinstance(event, Action) and event.path and os.path.basename(event.path.rstrip("/")) == name:
                return _outcome(
                    {"result": event.result, "detail": event.detail, "path": event.path, "bytes": event.bytes}
                )
            if isinstance(event, Action) and event.result != "done":
                return Outcome(result="failed", detail=event.detail or event.result)
        time.sleep(0.2)
    why = "it was stopped" if stopped() else f"it had not ended after {seconds:.0f} s"
    return Outcome(result="failed", detail=f"The agent waited no longer: {why}.")


def _outcome(body: Mapping[str, Any]) -> Outcome:
    if body.get("result") != "done":
        return Outcome(result="failed", detail=str(body.get("detail") or body.get("result")))
    size = body.get("bytes")
    return Outcome(
        result="done", detail=str(body.get("detail") or ""), path=str(body.get("path") or "") or None,
        bytes=size if isinstance(size, int) else None,
    )  # fmt: skip


def _post(url: str, body: Mapping[str, Any], token: str) -> tuple[int, dict[str, Any]]:
    asked = urllib.request.Request(
        url, data=json.dumps(body).encode(), method="POST",
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )  # fmt: skip
    try:
        with access.opener(url, _NoRedirect).open(asked, timeout=ANSWER_SECONDS) as answer:
            return answer.status, _object(answer.read(_MOST_BYTES))
    except urllib.error.HTTPError as error:
        with error:
            return error.code, _object(error.read(_MOST_BYTES))
    except (OSError, ValueError, HTTPException) as error:
        return 0, {"error": str(getattr(error, "reason", error))[:200]}


def _object(text: bytes) -> dict[str, Any]:
    try:
        found = json_lines.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
