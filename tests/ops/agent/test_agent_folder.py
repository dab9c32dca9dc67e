"""`jaxobs agent` and its folder: one agent at a time, also after one that was killed; and a port that is free."""

import pathlib
import re
import subprocess
import sys
import urllib.request

import pytest
from helpers.run_programs import environment

from jaxobs import cli
from jaxobs.ops.agent import serving

COMMAND = [sys.executable, "-m", "jaxobs", "agent", "--prometheus", "http://127.0.0.1:9", "--listen", "127.0.0.1:0"]


def start(folder: pathlib.Path) -> subprocess.Popen[str]:
    """An agent that serves where it says."""
    process = subprocess.Popen(
        [*COMMAND, "--reports", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=environment(),
    )  # fmt: skip
    assert process.stdout is not None
    found = re.search(r"http://127\.0\.0\.1:[1-9]\d*", process.stdout.readline())
    assert found is not None
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{found[0]}/healthz", timeout=60) as answer:
        assert answer.status == 200
    return process


def test_a_folder_is_one_agents(tmp_path: pathlib.Path) -> None:
    """Two would take up the same incidents and write over each other; a killed one leaves no claim behind."""
    first = start(tmp_path)
    try:
        other = subprocess.run(
            [*COMMAND, "--reports", str(tmp_path)], capture_output=True, text=True, env=environment(), timeout=120
        )
        assert (other.returncode, other.stdout) == (2, "")
        assert f"belongs to another agent: process {first.pid}" in other.stderr
    finally:
        first.kill()
        first.communicate()
    with start(tmp_path) as again:
        again.terminate()
        assert again.wait(60) == 0


def test_ports_are_numbers(tmp_path: pathlib.Path) -> None:
    for port in ("65536", "x", "-1", ""):
        arguments = ["agent", "--prometheus", "http://127.0.0.1:9", "--reports", str(tmp_path), "--listen", f"a:{port}"]
        assert cli.main(arguments) == 2


@pytest.mark.parametrize(
    ("listen", "more", "warned"),
    [
        ("0.0.0.0:0", (), True),
        ("0.0.0.0:0", ("--url", "https://agent.example.org"), True),
        ("0.0.0.0:0", ("--allow-host", "jaxobs-agent"), False),
        ("127.0.0.1:0", (), False),
    ],
)
def test_an_agent_that_answers_to_any_host_name_says_so(
    listen: str, more: tuple[str, ...], warned: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(serving, "serve", lambda *_: None)
    arguments = ["agent", "--prometheus", "http://127.0.0.1:9", "--reports", str(tmp_path), "--listen", listen, *more]
    assert cli.main(arguments) == 0
    assert ("any host name. Set --allow-host NAME." in capsys.readouterr().err) == warned
