"""Clients of the agent and of MCP that are idle or slow: they make way for those that ask."""

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from helpers.paths import ROOT
from helpers.waiting import HANG_SECONDS, until

from jaxobs.ops.connections import MOST_CONNECTIONS
from tools.ports import free_port

TOKEN = "0123456789abcdef"
BODY = b'{"version": "4", "alerts": []}'
HEAD = (
    b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Authorization: Bearer 0123456789abcdef\r\nAccept: application/json\r\nConnection: close\r\n"
)


@pytest.fixture(params=["agent", "mcp"])
def server(
    request: pytest.FixtureRequest, tmp_path: pathlib.Path
) -> Iterator[tuple[subprocess.Popen[bytes], int, bytes]]:
    """A process with its port and the path of its requests."""
    (tmp_path / "token").write_text(TOKEN, encoding="utf-8")
    port = free_port()
    options = {
        "agent": ["--listen", f"127.0.0.1:{port}", "--prometheus", "http://127.0.0.1:1", "--reports", str(tmp_path)],
        "mcp": ["--http", f"127.0.0.1:{port}"],
    }[request.param]
    command = [sys.executable, "-m", "jaxobs", request.param, *options, "--token-file", str(tmp_path / "token")]
    process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL)
    try:
        until(lambda: listens(port))
        yield process, port, {"agent": b"/webhook", "mcp": b"/mcp"}[request.param]
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("begun", ["nothing", "head", "body"])
def test_idle_clients_do_not_keep_the_next_one_out(
    server: tuple[subprocess.Popen[bytes], int, bytes], begun: str
) -> None:
    """300 that send nothing, or a part of a request: the oldest are closed, and a request is answered at once."""
    process, port, path = server
    whole = HEAD % path + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
    sent = {"nothing": b"", "head": whole[:40], "body": whole[:-1]}[begun]
    assert answered(port, whole)
    idle = descriptors(process)
    with contextlib.ExitStack() as clients:
        for _ in range(300):
            client = clients.enter_context(socket.create_connection(("127.0.0.1", port), timeout=HANG_SECONDS))
            client.sendall(sent)
        until(lambda: descriptors(process) <= idle + MOST_CONNECTIONS)
        assert answered(port, whole)
    until(lambda: descriptors(process) <= idle)


def answered(port: int, whole: bytes) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=HANG_SECONDS) as asks:
        asks.sendall(whole)
        return asks.recv(100).split()[1] in (b"202", b"200", b"400")


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def descriptors(process: subprocess.Popen[bytes]) -> int:
    return len(os.listdir(f"/proc/{process.pid}/fd"))
