"""`jaxobs bundle` and `jaxobs diagnose --bundle`: what they print, and their exit codes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from jaxobs import cli


def test_write_and_read(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.log").write_text("OSError: [Errno 28] No space left on device: '/ckpt'\n", encoding="utf-8")
    assert cli.main(["bundle", "--log", "train.log", "--log", "gone.log"]) == 0
    said = capsys.readouterr().out
    (bundle,) = tmp_path.glob("incident-*Z.tar.gz")
    for part in (bundle.name, hashlib.sha256(bundle.read_bytes()).hexdigest(), "files:   1 of 2", "cause (disk_full)"):
        assert part in said
    assert "gone.log: No such file or directory" in said
    assert cli.main(["diagnose", "--bundle", bundle.name]) == 1
    assert "[disk_full]" in capsys.readouterr().out
    assert cli.main(["bundle", "--json", "--log", "train.log", "-o", "b.zip"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert (body["path"], body["diagnosis"]["verdict"]) == ("b.zip", "cause")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["bundle"], "Nothing to collect"),
        (["bundle", "--log=x", "-o", "incident.rar"], "does not end in"),
        (["bundle", "--log=x", "-o", "no/such/folder/incident.zip"], "cannot be written"),
        (["bundle", "--log=x", "--window=0"], "--window"),
        (["diagnose", "--bundle=x.zip", "--log=x"], "leave the other sources out"),
    ],
)
def test_usage(line: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(line) == 2
    assert said in capsys.readouterr().err
