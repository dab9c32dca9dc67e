"""The paths at which reports are read, for whoever has the read token."""

import threading
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jaxobs.base import callers
from jaxobs.ops.agent import rendering
from jaxobs.ops.agent.pages.list_page import Lists, list_page
from jaxobs.ops.agent.pages.markup import POLICY
from jaxobs.ops.agent.pages.report_page import report_page
from jaxobs.ops.agent.working import Agent
from jaxobs.ops.monitoring.promql import GROUPING

HEADERS = {
    "Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store", "Cross-Origin-Resource-Policy": "same-origin",
}  # fmt: skip
_HTML, _PLAIN = "text/html; charset=utf-8", "text/plain; charset=utf-8"
_MOST_LABEL = 300


def routes(agent: Agent, token: str, *, is_shown: bool) -> list[Route]:
    """Returns the routes of the list and of the reports.

    Args:
      token: what a reader has to show, as a bearer token or as a password; none is needed if it is empty.
      is_shown: whether they are shown without a token.
    """
    lists, listing = Lists(), threading.Lock()

    def refusal(request: Request) -> Response | None:
        if not token:
            said = "The agent shows reports to other machines if it has a token for them: --read-token-file FILE.\n"
            return None if is_shown else _answer(said, _PLAIN, 403)
        if callers.is_token(callers.shown_token(request.headers.get("authorization"), basic=True), token):
            return None
        refused = _answer("Send the read token as `Authorization: Bearer TOKEN`; in a browser, it is the password.\n",
                          _PLAIN, 401)  # fmt: skip
        for scheme in ("Bearer", "Basic"):
            refused.headers.append("WWW-Authenticate", f'{scheme} realm="jaxobs agent"')
        return refused

    def guarded(make: Callable[[Request], Response]) -> Callable[[Request], object]:
        async def answer(request: Request) -> Response:
            refused = refusal(request)
            return await run_in_threadpool(make, request) if refused is None else refused

        return answer

    def listed(request: Request) -> Response:
        asked = request.query_params
        wanted = {each: asked[each][:_MOST_LABEL] for each in ("job", *GROUPING) if asked.get(each)}
        names, opened = agent.store.names(), {each.id for each in agent.incidents()}
        with listing:
            rows = lists.rows(names, opened, wanted, agent.store.version, agent.report)
        return _answer(list_page(rows, wanted, len(opened - {*names})), _HTML)

    def shown(request: Request) -> Response:
        name, _, form = request.path_params["name"].partition(".")
        report = agent.report(name) if form in ("", "json", "md") else None
        if report is None:
            return _answer("There is no such report.\n", _PLAIN, 404)
        if form == "json":
            return _answer(report.model_dump_json(indent=2) + "\n", "application/json")
        if form == "md":
            return _answer(rendering.markdown(report), "text/markdown; charset=utf-8")
        return _answer(report_page(report), _HTML)

    return [Route("/", guarded(listed)), Route("/incidents/{name}", guarded(shown))]


def _answer(body: str, kind: str, status: int = 200) -> Response:
    return Response(body.encode(errors="backslashreplace"), status, HEADERS, kind)
