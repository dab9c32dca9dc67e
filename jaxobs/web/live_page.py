"""The live page at `/`, and the JSON API: `/api/v1/snapshot`, `/api/v1/events` and `/api/v1/verdict`."""

from __future__ import annotations

from collections.abc import Mapping

from jaxobs.exporters.forms.http_types import BadRequest, Request, Response, Route, json_response
from jaxobs.facts.events import as_event, plain
from jaxobs.facts.kinds import event_types
from jaxobs.findings.verdict import judged
from jaxobs.state.store import Store
from jaxobs.web import page


def routes(store: Store) -> Mapping[str, Route]:
    """Returns the paths that this exporter answers."""

    def live_page(request: Request) -> Response:
        policy = ("Content-Security-Policy", page.CONTENT_SECURITY_POLICY)
        return Response(page.render(), "text/html; charset=utf-8", (policy,))

    def snapshot(request: Request) -> Response:
        return json_response(plain(judged(store.snapshot())))

    def verdict(request: Request) -> Response:
        return json_response(plain(judged(store.snapshot()).verdict))

    def events(request: Request) -> Response:
        since = request.query.get("since", "0")
        if not since.isdecimal() or len(since) > 18:
            raise BadRequest(
                f"`since` is {since!r:.100}, which is not an event number. Use the `next` of the last response."
            )
        kind = request.query.get("kind")
        if kind is not None and kind not in event_types():
            raise BadRequest(f"`kind` is {kind!r:.100}. Known kinds: {', '.join(event_types())}.")
        found, newest, lost = store.events(int(since), kind)
        return json_response({"events": [as_event(event) for event in found], "next": newest, "dropped": lost})

    return {
        "/": live_page,
        "/api/v1/snapshot": snapshot,
        "/api/v1/events": events,
        "/api/v1/verdict": verdict,
    }
