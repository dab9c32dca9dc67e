"""`jaxobs mcp` as a program: over standard input and output, and over HTTP with a token."""

import json
import logging
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from helpers.made_by_hand import compilation
from helpers.run_programs import environment
from helpers.waiting import until
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from starlette.requests import ClientDisconnect

from jaxobs import cli
from jaxobs.facts.events import as_event
from jaxobs.ops.assistants import serving
from tools.ports import free_port

COMMAND = [sys.executable, "-m", "jaxobs", "mcp"]
TOKEN = "a-token-that-is-long-enough"


@pytest.fixture
def log(tmp_path: Path) -> str:
    (tmp_path / "events.jsonl").write_text(json.dumps(as_event(compilation(pid=7))) + "\n", encoding="utf-8")
    return str(tmp_path / "events.jsonl")


async def walk(client: Client) -> tuple[int, Any]:
    """How many tools there are, and the answer of one."""
    async with client:
        tools = (await client.list_tools()).tools
        return len(tools), (await client.call_tool("list_processes", {})).structured_content


def test_stdio(log: str) -> None:
    """A client that starts it gets its tools and an answer."""
    server = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], "--event-log", log], env=environment())
    count, answer = anyio.run(walk, Client(stdio_client(server)))
    assert count == 13
    assert answer["data"][0]["name"] == "events.jsonl"


@pytest.mark.parametrize(("line", "goes_on"), [(10, True), (100_000, True), (200_000, False), (10_000_000, False)])
def test_a_message_that_is_too_long_ends_the_input(
    line: int, goes_on: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server gets not much more of it than a message may have."""
    monkeypatch.setattr(serving, "MOST_LINE", 2**17)
    (tmp_path / "sent").write_bytes(b"first\n" * 50_000 + b"x" * line + b"\nlast\n")
    read_end, write_end = os.pipe()
    copying = threading.Thread(target=serving._bounded, args=(os.open(tmp_path / "sent", os.O_RDONLY), write_end))
    copying.start()
    with open(read_end, "rb") as file:
        found = file.read()
    copying.join()
    assert found.startswith(b"first\n" * 50_000) and found.endswith(b"last\n") == goes_on
    assert len(found) < 300_000 + 2**17 + 2**17


@pytest.mark.slow
def test_standard_output_is_the_wire(log: str) -> None:
    """Each line of it is a message of the protocol, whatever is asked; it ends when standard input does."""
    messages = [
        {"method": "initialize", "id": 1, "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}},
        {"method": "notifications/initialized"},
        {"method": "tools/call", "id": 2, "params": {"name": "run_doctor", "arguments": {}}},
        {"method": "tools/call", "id": 3, "params": {"name": "diagnose", "arguments": {}}},
        {"method": "tools/call", "id": 4, "params": {"name": "write_anything", "arguments": {}}},
    ]  # fmt: skip
    answers = {}
    with subprocess.Popen(
        [*COMMAND, "--event-log", log], env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        for each in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **each}) + "\n")
        process.stdin.flush()
        while set(answers) != {1, 2, 3, 4}:
            body = json.loads(process.stdout.readline())
            assert body["jsonrpc"] == "2.0"
            answers[body.get("id")] = body
        process.stdin.close()
        assert process.stdout.read() == ""
        assert process.wait(120) == 0
    assert answers[2]["result"]["structuredContent"]["status"] in ("ok", "no_data")
    assert "result" not in answers[4] or answers[4]["result"]["isError"]


@pytest.fixture
def token(tmp_path: Path) -> str:
    (tmp_path / "token").write_text(f"{TOKEN}\n", encoding="utf-8")
    return str(tmp_path / "token")


@pytest.fixture
def served(log: str, token: str) -> Iterator[str]:
    port = free_port()
    command = [*COMMAND, "--event-log", log, "--http", f"127.0.0.1:{port}", "--token-file", token]
    process = subprocess.Popen(command, env=environment())
    url = f"http://127.0.0.1:{port}/mcp"
    try:
        until(lambda: process.poll() is not None or status(url) is not None)
        assert process.poll() is None
        yield url
    finally:
        process.terminate()
        process.wait(120)


def status(url: str, **headers: str) -> int | None:
    """The status of a POST; None if nobody listens."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    known = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    request = urllib.request.Request(url, body, known | headers)
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except urllib.error.URLError:
        return None


def test_http(served: str) -> None:
    """A client with the token gets the same; without it, or for another host or origin, nobody gets anything."""
    assert status(served) == 401
    assert status(served, Authorization="Bearer wrong") == 401
    right = {"Authorization": f"Bearer {TOKEN}"}
    assert status(served, **right, Host="evil.example") == 421
    assert status(served, **right, Origin="http://evil.example") == 403

    async def main() -> Any:
        async with httpx2.AsyncClient(headers=right, trust_env=False, timeout=60) as http:
            return await walk(Client(streamable_http_client(served, http_client=http)))

    count, answer = anyio.run(main)
    assert count == 13
    assert answer["status"] == "ok"


@pytest.mark.parametrize(("error", "told"), [(ClientDisconnect(), False), (ValueError(), True)])
def test_a_client_that_leaves_in_the_middle_of_its_request_is_not_logged(error: Exception, told: bool) -> None:
    record = logging.LogRecord("mcp", logging.ERROR, "", 0, "", (), (type(error), error, None))
    assert serving.is_failure(record) is told


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["--http=127.0.0.1:8765"], "--http needs --token-file FILE"),
        (["--http=127.0.0.1:8765", "--token-file=/no/such/file"], "cannot be read: No such file"),
        (["--http=127.0.0.1:8765", "--token-file=short"], "a token of at least 16 characters"),
        (["--http=8765x", "--token-file=token"], "is not an address"),
        (["--http=127.0.0.1:0", "--token-file=token"], "is not an address"),
        (["--reports=/no/such/folder"], "is not a directory"),
        (["--target=no address"], "is not the address of an endpoint"),
    ],
)
def test_usage(
    line: list[str], said: str, token: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(token).parent)
    Path("short").write_text("0123456789abcde", encoding="utf-8")
    assert cli.main(["mcp", *line]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert TOKEN not in error
    assert "0123456789abcde" not in error


def test_a_port_that_is_taken(served: str, token: str) -> None:
    address = served.removeprefix("http://").removesuffix("/mcp")
    done = subprocess.run(
        [*COMMAND, "--http", address, "--token-file", token],
        env=environment(), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert f"Nothing can listen on {address}" in done.stderr
    assert done.stdout == ""
