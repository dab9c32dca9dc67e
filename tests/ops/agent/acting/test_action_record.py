"""The record: a line that broke off costs no other one, and whoever turns the kill switch is on it."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

import pytest

from jaxobs import cli
from jaxobs.ops.agent.acting import controls, desk
from jaxobs.ops.agent.acting.audit import Audit


def test_a_line_that_broke_off_costs_no_other_one(tmp_path: Path) -> None:
    """The agent was killed while it wrote: what it begins afterwards still counts for cool-downs and limits."""
    record = Audit(tmp_path)
    record.add(1.0, {"decision": "begun", "id": "a"})
    with record.path.open("ab") as file:
        file.write(b'{"time": "2026-01-31T09:00:00Z", "at": 2.0, "decis')
    record.add(3.0, {"decision": "begun", "id": "b"})
    record.add(4.0, {"decision": "done", "id": "b"})
    assert [(each["at"], each["id"]) for each in record.lines()] == [(1.0, "a"), (3.0, "b"), (4.0, "b")]


def test_the_kill_switch_is_on_the_record(tmp_path: Path) -> None:
    """Who turned it, and when; it holds also where the record cannot be written, and stays on then."""
    controls.stop(tmp_path, "mia", 1.0)
    assert desk.stopped(tmp_path) and controls.resume(tmp_path, "ada", 2.0) and controls.resume(tmp_path, "ada", 3.0)
    assert [(each["decision"], each["actor"], each["at"]) for each in Audit(tmp_path).lines()] == [
        ("stopped", "human:mia", 1.0), ("resumed", "human:ada", 2.0),
    ]  # fmt: skip
    Audit(tmp_path).path.unlink()
    Audit(tmp_path).path.mkdir()
    controls.stop(tmp_path, "mia")
    assert desk.stopped(tmp_path)
    with pytest.raises(OSError):
        controls.resume(tmp_path, "mia")
    assert desk.stopped(tmp_path)


def test_a_user_without_a_name_stops_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container, whose user is only a number."""

    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 65532")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert cli.main(["agent", "stop", "--reports", str(tmp_path)]) == 0
    assert [each["actor"] for each in Audit(tmp_path).lines()] == [f"human:uid {os.getuid()}"]
