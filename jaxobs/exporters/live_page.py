"""The live page at `/`, and the JSON that it reads: `/api/v1/snapshot` and `/api/v1/events`."""

from __future__ import annotations

from collections.abc import Mapping

from jaxobs import page
from jaxobs.facts import EVENT_KINDS, as_event, plain
from jaxobs.http_types import BadRequest, Request, Response, Route, json_response
from jaxobs.store import Store


def routes(store: Store) -> Mapping[str, Route]:
    """The paths that this exporter answers."""

    def live_page(request: Request) -> Response:
        policy = ("Content-Security-Policy", page.CONTENT_SECURITY_POLICY)
        return Response(page.render(), "text/html; charset=utf-8", (policy,))

    def snapshot(request: Request) -> Response:
        return json_response(plain(store.snapshot()))

    def events(request: Request) -> Response:
        since = request.query.get("since", "0")
        if not since.isdecimal() or len(since) > 18:
            raise BadRequest(f"`since` is {since!r:.100}, which is no event number. Use the `next` of the last answer.")
        kind = request.query.get("kind")
        if kind is not None and kind not in EVENT_KINDS:
            raise BadRequest(f"`kind` is {kind!r:.100}. Known kinds: {', '.join(EVENT_KINDS)}.")
        found, newest, lost = store.events(int(since), kind)
        return json_response({"events": [as_event(event) for event in found], "next": newest, "dropped": lost})

    return {"/": live_page, "/api/v1/snapshot": snapshot, "/api/v1/events": events}
