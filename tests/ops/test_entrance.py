"""Hosts and origins at every server: page, agent and MCP read them alike."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers.endpoints import connect, read_all, serving
from starlette.testclient import TestClient

from jaxobs.base import callers
from jaxobs.ops.agent.investigating import Where
from jaxobs.ops.agent.serving import application
from jaxobs.ops.agent.store import Store
from jaxobs.ops.agent.working import Agent
from jaxobs.ops.assistants.answers import Sources
from jaxobs.ops.assistants.serving import http_app
from jaxobs.ops.diagnosis import Inputs

Ask = Callable[[list[tuple[str, str]]], int]
"""Function that sends a request with headers, and returns the status of the answer."""

pytestmark = pytest.mark.usefixtures("fresh")
KNOWN = callers.known_hosts("127.0.0.1", [], closed=True)


@pytest.fixture(params=["page", "agent", "mcp"])
def ask(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ask]:
    """A server of each kind, asked for something that it has."""
    if request.param == "page":
        with serving() as handle:

            def raw(headers: list[tuple[str, str]]) -> int:
                lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
                with connect(handle, f"GET /healthz HTTP/1.0\r\n{lines}\r\n".encode("latin-1")) as client:
                    return int(read_all(client).split()[1])

            yield raw
    elif request.param == "agent":
        agent = Agent(Store(str(tmp_path)), Where(prometheus="http://127.0.0.1:1"))
        client = TestClient(application(agent, known=KNOWN), base_url="http://localhost")
        yield lambda headers: client.get("/metrics", headers=headers).status_code
    else:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        known = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        right = [*known.items(), ("Authorization", "Bearer 0123456789abcdef")]
        with TestClient(
            http_app(Sources(inputs=Inputs()), "0123456789abcdef", KNOWN), base_url="http://localhost"
        ) as client:
            yield lambda headers: client.post("/mcp", content=body, headers=[*right, *headers]).status_code


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9464", "127.0.0.1:9465", "[::1]", "[::1]:8765"])
def test_a_request_for_this_machine_is_let_in(ask: Ask, host: str) -> None:
    assert ask([("Host", host)]) == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.com", "[::1].evil.com", "127.0.0.1:80@evil.com", "user@localhost", "localhost:99999", "localhost:0", "",
        "localhost:80x", "localhost:", "localhost,evil.com", "localhost.", "[::1", "[::1]evil.com:80", "0.0.0.0",
    ],
)  # fmt: skip
def test_a_request_for_another_host_is_refused(ask: Ask, host: str) -> None:
    """A web page reaches this machine by a name of its own, if that resolves to 127.0.0.1 (DNS rebinding)."""
    assert ask([("Host", host)]) in (400, 403, 421)
    assert ask([("Host", "localhost"), ("Host", host)]) in (400, 403, 421)
