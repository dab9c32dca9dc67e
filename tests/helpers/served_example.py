"""A serving example in a process of its own, while a test asks it."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import pytest

from helpers.paths import ROOT

EXAMPLES = ROOT / "examples"


@contextlib.contextmanager
def running(
    program: str, *arguments: str, ready: int, python: str | pathlib.Path = sys.executable, **variables: str
) -> Iterator[None]:
    """An example in a process group of its own, from when its port `ready` answers until it is interrupted."""
    known = {**os.environ, "JAX_PLATFORMS": "cpu", **variables}
    command = [str(python), str(EXAMPLES / program), *arguments]
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, env=known, stdout=output, stderr=output, start_new_session=True)
        try:
            wait_for(ready, process)
            if process.poll() is not None:
                output.seek(0)
                pytest.fail(output.read())
            yield
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=120)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
