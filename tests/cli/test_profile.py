"""`jaxobs profile` on traces made by hand and on what is none."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers import xplanes
from helpers.xplanes import event, operation

from jaxobs import cli
from jaxobs.views import client
from tools.ports import free_port

US = 1000.0


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return xplanes.write(
        tmp_path / "trace",
        xplanes.host(
            python=[event("train", 0, 10 * US, step_num=0), event("train", 20 * US, 30 * US, step_num=1)],
            worker=[operation("dot.1", 1 * US, 9 * US), operation("dot.1", 21 * US, 29 * US, run=2)],
        ),
    )


def test_json_has_the_documented_shape(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["profile", str(trace), "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert list(body) == ["window_seconds", "steps", "devices", "functions", "operations", "idle", "collectives"]
    assert body["window_seconds"] == pytest.approx(30e-6)
    assert body["steps"] == 2
    assert body["devices"] == [
        {"device": "cpu:0", "busy_seconds": pytest.approx(16e-6), "busy_ratio": pytest.approx(16 / 30)}
    ]
    assert body["functions"] == [{"function": "f", "device_seconds": pytest.approx(16e-6), "calls": 2}]
    assert body["operations"] == [{
        "operation": "dot.1", "function": "f", "category": "matmul", "scope": None, "source": None,
        "device_seconds": pytest.approx(16e-6), "share": 1.0, "count": 2, "flops": None, "bytes": None,
        "bound": "unknown", "dtype": None, "roofline_ratio": None, "replicated": None, "widened": None,
    }]  # fmt: skip
    assert sum(each["seconds"] for each in body["idle"]) == pytest.approx(14e-6)
    assert all(list(each) == ["reason", "seconds"] for each in body["idle"])
    assert body["collectives"] == {"seconds": 0.0, "exposed_seconds": 0.0}


def test_text_says_what_it_found(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["profile", str(trace)]) == 0
    out = capsys.readouterr().out
    for expected in ("2 steps", "cpu:0", "53.3%", "dot.1", "matmul", "The trace has no programs"):
        assert expected in out


def test_the_newest_of_several_traces_is_read(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    older = trace / "older.xplane.pb"
    older.touch()
    os.utime(older, (0, 0))
    assert cli.main(["profile", str(trace)]) == 0
    assert "has 2 traces. This is the newest" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("missing", None, "does not exist"),
        ("empty.xplane.pb", b"", "is not a trace"),
        ("text.xplane.pb", b"hello, world\n", "is not a trace, or only a part of one"),
        ("planes.xplane.pb", b"\n\0" * 10_001, "is too large: it has more than 10,000 planes"),
        ("fields.xplane.pb", b"\x1a\0" * 10_001, "is too large: it has more than 10,000 planes"),
        ("cut.xplane.pb", "cut", "is not a trace, or only a part of one"),
        ("trace.json", b'{"traceEvents": []}', "beside it"),
        ("folder/", None, "has no file `*.xplane.pb`"),
    ],
)
def test_what_is_no_trace_is_refused(
    name: str, content: bytes | str | None, said: str, trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    if name.endswith("/"):
        path.mkdir()
    elif content == "cut":
        [whole] = trace.glob("**/*.xplane.pb")
        path.write_bytes(whole.read_bytes()[:-20])
    elif isinstance(content, bytes):
        path.write_bytes(content)
    assert cli.main(["profile", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"jaxobs: `{path}`")
    assert said in captured.err
    assert captured.err.count("\n") == 1


def test_hosts_of_one_job_are_shown_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for host, until in (("one", 10 * US), ("two", 20 * US)):
        xplanes.write(tmp_path, xplanes.host(worker=[operation("dot.1", 0, until)]), host=host)
    assert cli.main(["profile", str(tmp_path), "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert [each["device"] for each in body["devices"]] == ["one/cpu:0", "two/cpu:0"]
    assert body["window_seconds"] == pytest.approx(20e-6)
    assert [(each["device_seconds"], each["count"]) for each in body["operations"]] == [(pytest.approx(30e-6), 2)]
    assert body["functions"][0]["calls"] == 1


def test_comparison_as_json_and_text(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slower = xplanes.write(
        tmp_path / "slower",
        xplanes.host(python=[event("train", 0, 40 * US, step_num=0)], worker=[operation("dot.1", 1 * US, 31 * US)]),
    )
    assert cli.main(["profile", str(trace), "--compare", str(slower), "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert list(body) == [
        "headline", "per", "window_seconds", "device_seconds", "idle", "functions", "scopes", "operations", "sources",
    ]  # fmt: skip
    assert body["per"] == "step"
    assert body["operations"] == [{
        "name": "f: dot.1", "a": pytest.approx(8e-6), "b": pytest.approx(30e-6), "change": pytest.approx(22e-6),
        "category": "matmul",
    }]  # fmt: skip
    assert cli.main(["profile", str(trace), "--compare", str(slower)]) == 0
    assert "`f: dot.1` takes 0.022 ms more." in " ".join(capsys.readouterr().out.split())


def test_an_event_log_leads_to_its_newest_trace(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "events.jsonl"

    def write(*paths: str, result: str = "done") -> None:
        rows = [
            {
                "time": "2026-01-01T00:00:00Z", "event": "action", "process_index": 0, "pid": 1, "sequence": number,
                "name": "profile", "origin": "python", "result": result, "path": path, "detail": "why",
            }
            for number, path in enumerate(paths)
        ]  # fmt: skip
        log.write_text("".join(json.dumps(each) + "\n" for each in rows))

    write("/gone/older", f"/moved/{trace.name}")
    assert cli.main(["profile", str(log), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["steps"] == 2
    assert f"This is `/moved/{trace.name}`" in captured.err
    write("/gone/older")
    assert cli.main(["profile", str(log)]) == 2
    assert "none of them is there any more; the last one was `/gone/older`" in capsys.readouterr().err
    write("/gone/older", result="refused")
    assert cli.main(["profile", str(log)]) == 2
    assert "The last attempt was refused: why" in capsys.readouterr().err


def test_an_address_without_a_process_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["profile", f"127.0.0.1:{free_port()}"]) == 2
    assert "No jaxobs endpoint at `http://127.0.0.1:" in capsys.readouterr().err


PROGRAM = """
import sys, time
import jax, jax.numpy as jnp
import jaxobs

@jax.jit
def train_step(x):
    return jnp.tanh(x @ x)

x = jnp.ones((64, 64))
until = time.time() + 240
while time.time() < until:
    with jaxobs.step("train"):
        x = jax.block_until_ready(train_step(x))
        time.sleep(0.01)
"""


@pytest.mark.slow
def test_a_running_process_takes_a_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script, log, port = tmp_path / "train.py", tmp_path / "events.jsonl", free_port()
    script.write_text(PROGRAM)
    command = [
        sys.executable, "-m", "jaxobs", "run", "--port", str(port), "--event-log", str(log), "--capture-directory",
        str(tmp_path / "captures"), "--actions", str(script),
    ]  # fmt: skip
    process = subprocess.Popen(command, env={**os.environ, "JAXOBS_ACTION_TOKEN": "open-sesame"}, cwd=tmp_path)
    try:
        until = time.monotonic() + 120
        while True:
            try:
                if client.fetch_snapshot(f"http://127.0.0.1:{port}").loops:
                    break
            except client.EndpointUnreachableError:
                pass
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.2)
        assert cli.main(["profile", str(port)]) == 2
        assert "set `JAXOBS_ACTION_TOKEN` to it" in capsys.readouterr().err
        monkeypatch.setenv("JAXOBS_ACTION_TOKEN", "wrong")
        assert cli.main(["profile", str(port)]) == 2
        assert "403: The token is wrong." in capsys.readouterr().err
        monkeypatch.setenv("JAXOBS_ACTION_TOKEN", "open-sesame")
        assert cli.main(["profile", str(port), "--steps", "3", "--json"]) == 0
        body = json.loads(capsys.readouterr().out)
        assert "train_step" in [each["function"] for each in body["functions"]]
        assert body["steps"] >= 2
    finally:
        process.terminate()
        process.wait(120)
    assert cli.main(["profile", str(log), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == body
