"""Actions on a real process: captures that are really there, and answers that are none."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.answering import serving
from helpers.run_programs import environment
from helpers.waiting import until

from jaxobs.ops import captures
from jaxobs.ops.agent.acting import desk, processes
from jaxobs.ops.agent.acting.actions import RefusedError, Request
from jaxobs.ops.agent.acting.policy import Policy
from tools.ports import free_port

TOKEN = "of the test"
PROGRAM = """\
import jax, jax.numpy as jnp, time, sys, jaxobs
step = jaxobs.jit(lambda x: jnp.tanh(x @ x))
x = step(jnp.ones((32, 32)))
while True:
    with jaxobs.step("train"):
        x = step(x)
        time.sleep(0.01)
"""


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A training process that accepts actions: its URL and its folder."""
    folder = tmp_path_factory.mktemp("job")
    (folder / "train.py").write_text(PROGRAM)
    port = free_port()
    running = subprocess.Popen(
        [sys.executable, "-m", "jaxobs", "run", "--port", str(port), "--event-log", "log/events.jsonl", "train.py"],
        cwd=folder, env=environment(JAXOBS_ACTIONS="1", JAXOBS_ACTION_TOKEN=TOKEN),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    url = f"http://127.0.0.1:{port}"

    def steps() -> bool:
        try:
            return (processes.await_moment(url, time.time) or 0.0) > 0.0
        except RefusedError:
            assert running.poll() is None
            return False

    try:
        until(steps)
        yield url, folder
    finally:
        running.kill()
        running.wait()


def wanted(action: str, url: str) -> Request:
    return Request(action=action, actor="rule:test", target=url, job="train")


def asked(folder: Path, url: str, action: str, **more: object) -> desk.Decision:
    policy = Policy(allow=("A1", "A2"), dry_run=False, slower=100, **more)  # type: ignore[arg-type]
    return desk.Desk(directory=folder, policy=policy, targets=lambda job: [url]).request(wanted(action, url))


def test_captures_are_there(process: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace of steps and a memory profile, in the process's own directory of captures."""
    url, folder = process
    monkeypatch.setenv("JAXOBS_ACTION_TOKEN", TOKEN)
    profile = until(lambda: _unless_busy(asked(tmp_path / "a", url, "capture_profile")))
    assert profile.decision == "done", profile
    assert list(Path(str(profile.path)).rglob("*.xplane.pb")), profile
    memory = asked(tmp_path / "b", url, "dump_memory")
    assert memory.decision == "done" and Path(str(memory.path)).name == "memory.pb.gz", memory
    assert Path(str(memory.path)).is_relative_to(folder) and Path(str(memory.path)).stat().st_size > 0


def _unless_busy(decision: desk.Decision) -> desk.Decision | None:
    """A busy machine makes a step so long that the process seems to hang."""
    return None if "it may hang" in decision.reason else decision


def test_a_wrong_or_missing_token(process: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, _ = process
    monkeypatch.setenv("JAXOBS_ACTION_TOKEN", "another")
    assert "403" in until(lambda: _unless_busy(asked(tmp_path / "a", url, "dump_memory"))).reason
    monkeypatch.delenv("JAXOBS_ACTION_TOKEN")
    told = until(lambda: _unless_busy(asked(tmp_path / "b", url, "dump_memory"))).reason
    assert "JAXOBS_ACTION_TOKEN" in told and "not set" in told


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((200, b"[" * 99_999, {}), "None"),
        ((200, json.dumps({"result": "done", "detail": "x" * 10_000, "path": 5, "bytes": "many"}).encode(), {}), "x"),
        ((302, b"", {"Location": "/elsewhere"}), "302"),
        ((500, b"\xff\xfe", {}), "500"),
        ((202, b'{"name": "x", "events": "/api/v1/events?since=-1"}', {}), "no longer answers"),
    ],
)
def test_answers_that_are_none(
    answer: tuple[int, bytes, dict[str, str]], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers that no process of ours gives; a redirection would take the token along."""
    monkeypatch.setenv("JAXOBS_ACTION_TOKEN", TOKEN)
    seen: list[str] = []
    with serving(lambda request: seen.append(request) or answer) as url:
        found = captures.capture(url, "memory", {}, "JAXOBS_ACTION_TOKEN", 5.0, lambda: False)
    assert told in found.detail and seen[0] == "/api/v1/actions/memory" and "/elsewhere" not in seen
