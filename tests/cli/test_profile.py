"""`jaxobs profile` on traces made by hand and on what is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers import xplanes
from helpers.xplanes import event, operation

from jaxobs import cli

US = 1000.0


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Two steps with a gap."""
    return xplanes.write(
        tmp_path / "trace",
        xplanes.host(
            python=[event("train", 0, 10 * US, step_num=0), event("train", 20 * US, 30 * US, step_num=1)],
            worker=[operation("dot.1", 1 * US, 9 * US), operation("dot.1", 21 * US, 29 * US, run=2)],
        ),
    )


def test_json_has_the_documented_shape(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names that others build on."""
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
        "bound": "unknown",
    }]  # fmt: skip
    assert sum(each["seconds"] for each in body["idle"]) == pytest.approx(14e-6)
    assert all(list(each) == ["reason", "seconds"] for each in body["idle"])
    assert body["collectives"] == {"seconds": 0.0, "exposed_seconds": 0.0}


def test_text_says_what_it_found(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For people."""
    assert cli.main(["profile", str(trace)]) == 0
    out = capsys.readouterr().out
    for expected in ("2 steps", "cpu:0", "53.3%", "dot.1", "matmul", "The trace has no programs"):
        assert expected in out


def test_the_newest_of_several_traces_is_read(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And the text says so."""
    older = trace / "older"
    older.mkdir()
    (older / "here.xplane.pb").write_bytes(b"")
    import os

    os.utime(older / "here.xplane.pb", (0, 0))
    assert cli.main(["profile", str(trace)]) == 0
    assert "has 2 traces. This is the newest" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("missing", None, "does not exist"),
        ("empty.xplane.pb", b"", "is not a trace"),
        ("text.xplane.pb", b"hello, world\n", "is not a trace, or only a part of one"),
        ("cut.xplane.pb", "cut", "is not a trace, or only a part of one"),
        ("trace.json", b'{"traceEvents": []}', "beside it"),
        ("folder/", None, "has no file `*.xplane.pb`"),
    ],
)
def test_what_is_no_trace_is_refused(
    name: str, content: bytes | str | None, said: str, trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its name, what is wrong, and what to do: exit code 2."""
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
    """Each process writes a file of its own."""
    for host, until in (("one", 10 * US), ("two", 20 * US)):
        xplanes.write(tmp_path, xplanes.host(worker=[operation("dot.1", 0, until)]), host=host)
    assert cli.main(["profile", str(tmp_path), "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert [each["device"] for each in body["devices"]] == ["one/cpu:0", "two/cpu:0"]
    assert body["window_seconds"] == pytest.approx(20e-6)
    assert [(each["device_seconds"], each["count"]) for each in body["operations"]] == [(pytest.approx(30e-6), 2)]
    assert body["functions"][0]["calls"] == 1
