"""`POST /api/v1/actions/<name>`: an action for who knows the token. Not there at all unless the settings want it."""

import json
import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from jaxobs import actions
from jaxobs.actions.capturing import runner
from jaxobs.actions.capturing.runner import Capture
from jaxobs.base import callers
from jaxobs.base.errors import ParameterError
from jaxobs.exporters.forms.http_types import BadRequest, Post, Response, json_response, problem
from jaxobs.state.store import Store

PREFIX = "/api/v1/actions/"
ANSWER_SECONDS = 60.0
"""How long an answer waits for the end of an action that is waited for."""


def registered(store: Store) -> bool:
    """Returns whether actions are allowed and a token is set."""
    return store.settings.actions and bool(store.settings.action_token)


def unmet(store: Store) -> str | None:
    """Returns what is between the settings and actions, as a sentence; None if nothing, or nobody wants any."""
    if store.settings.actions and not store.settings.action_token:
        return "`actions` is on, but `action_token` is not set: the endpoint accepts no actions."
    if store.settings.action_token and not store.settings.actions:
        return "`action_token` is set, but `actions` is off: the endpoint accepts no actions."
    return None


def act(store: Store, post: Post) -> Response:
    """Runs the action that the path names; raises `BadRequest` if the body or a parameter makes no sense."""
    if not post.is_own:
        return problem("403 Forbidden", "Pages from other sites may not request actions.")
    shown = callers.shown_token(post.authorization)
    if not shown:
        return problem(
            "401 Unauthorized", "Send the header `Authorization: Bearer TOKEN`, with the setting `action_token`.",
            (("WWW-Authenticate", 'Bearer realm="jaxobs"'),),
        )  # fmt: skip
    if not callers.is_token(shown, store.settings.action_token):
        return problem("403 Forbidden", "The token is wrong.")
    name = post.path.removeprefix(PREFIX)
    if name not in actions.known():
        return problem("404 Not Found", f"No such action: {name!r:.100}. Known actions: {', '.join(actions.known())}.")
    _, newest, _ = store.events(kind="action")
    try:
        capture = runner.of(store).begin(name, _parameters(post), "http")
    except ParameterError as error:
        raise BadRequest(str(error)) from None
    if actions.known()[name].WAITED_FOR:
        capture.wait(ANSWER_SECONDS)
    return _answer(capture, newest)


def _parameters(post: Post) -> dict[str, Any]:
    """Parameters from the query and the body: a JSON object, or a form as `curl -d steps=5` sends it."""
    body = _body(post)
    twice = sorted(set(body) & set(post.query))
    if twice:
        raise BadRequest(f"`{twice[0]:.100}` is given in both the query and the body. Give it once.")
    return {**post.query, **body}


def _body(post: Post) -> Mapping[str, Any]:
    try:
        text = post.body.decode().strip()
        if not text:
            return {}
        if not text.startswith("{") and "form-urlencoded" in (post.content_type or ""):
            return dict(parse_qsl(text, keep_blank_values=True, strict_parsing=True))
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BadRequest('The body must be a JSON object, such as {"steps": 5}, or absent.')
    return found


def _answer(capture: Capture, newest: int) -> Response:
    told = {
        "action": capture.action, "name": capture.name, "result": capture.result or "under way",
        "detail": capture.detail, "path": capture.path, "bytes": capture.bytes, "seconds": capture.seconds,
    }  # fmt: skip
    body = {name: value for name, value in told.items() if value is not None}
    if capture.result is None:
        return json_response({**body, "events": f"/api/v1/events?kind=action&since={newest}"}, "202 Accepted")
    if capture.result == "done":
        return json_response(body)
    detail = capture.detail or ""
    if capture.retry_after is not None:
        seconds = math.ceil(capture.retry_after)
        return problem("429 Too Many Requests", detail, (("Retry-After", str(seconds)),))
    if capture.result == "failed":
        return problem("500 Internal Server Error", detail)
    return problem("409 Conflict", detail)
