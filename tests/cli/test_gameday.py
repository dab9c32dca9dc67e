"""`jaxobs gameday`: the list, the answer only at the end, and exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.run_programs import environment

from jaxobs import cli
from jaxobs.ops.gameday.faults import FAULTS
from tools.ports import free_port


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["gameday", "--list"]) == 0
    said = capsys.readouterr().out
    for name, each in FAULTS.items():
        assert f"\n{name}: " in f"\n{said}"
        assert f"runbooks/{each.alert}.md" in said
    assert cli.main(["gameday", "--list", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == set(FAULTS)


@pytest.mark.slow
def test_the_answer_comes_at_the_end(tmp_path: Path) -> None:
    folder = tmp_path / "day"
    command = [sys.executable, "-m", "jaxobs", "gameday", "crash", "--once", "--seed=3", f"--port={free_port()}"]
    done = subprocess.run([*command, f"--out={folder}"], env=environment(), capture_output=True, text=True, timeout=280)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    before, _, after = done.stdout.partition("The truth")
    assert "crash" not in before
    assert "JaxTrainingGone" not in before
    assert "program_error" in after
    assert "that is    right" in after
    assert (folder / "events.jsonl").exists()
