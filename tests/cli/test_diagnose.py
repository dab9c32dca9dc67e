"""`jaxobs diagnose`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jaxobs import cli


def log(folder: Path, text: str) -> str:
    (folder / "train.log").write_text(text, encoding="utf-8")
    return str(folder / "train.log")


def test_a_cause(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log(tmp_path, "2026-01-31 09:00:00 INFO step 1\nOSError: [Errno 28] No space left on device: '/ckpt'\n")
    assert cli.main(["diagnose", "--log", path]) == 1
    said = capsys.readouterr().out
    for part in ("Cause found.", "[disk_full]", "since 2026-01-31T09:00:00", "train.log:2", "Free space", "runbook:"):
        assert part in said


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = log(tmp_path, "OSError: [Errno 28] No space left on device: '/ckpt'\n")
    assert cli.main(["diagnose", "--json", "--log", path]) == 1
    body = json.loads(capsys.readouterr().out)
    assert body["verdict"] == "cause"
    assert {"id", "title", "component", "evidence", "fix", "runbook", "onset"} <= set(body["causes"][0])
    assert {each["status"] for each in body["hypotheses"]} <= {"supported", "refuted", "no_data"}
    assert body["missing"] == []


def test_no_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diagnose", "--log", log(tmp_path, "step 1\nstep 2\n")]) == 0
    assert "No fault" in capsys.readouterr().out


def test_inconclusive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diagnose", "--log", log(tmp_path, "process exited with code 137\n")]) == 1
    said = capsys.readouterr().out
    assert "Inconclusive" in said
    assert "dmesg" in said


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--json"],
        ["--window=0", "--log=x"],
        ["--window=nan", "--log=x"],
        ["--prometheus=file:///etc/passwd"],
        ["--prometheus=prometheus:9090"],
        ["--target="],
        ["--target=a:b:c"],
    ],
)
def test_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diagnose", *arguments]) == 2
    assert "jaxobs:" in capsys.readouterr().err
