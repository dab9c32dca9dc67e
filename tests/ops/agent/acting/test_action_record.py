"""The record: a line that broke off costs no other one, and whoever turns the kill switch is on it."""

import getpass
import itertools
import os
from pathlib import Path

import pytest

from jaxobs import cli
from jaxobs.ops.agent.acting.record import Record


def test_a_line_that_broke_off_costs_no_other_one(tmp_path: Path) -> None:
    """The agent was killed while it wrote: what it begins afterwards still counts for cool-downs and limits."""
    times = itertools.count(1.0)
    record = Record(tmp_path, lambda: next(times))
    record.add(decision="begun", id="a")
    with record.path.open("ab") as file:
        file.write(
            b'{"at": 1, "decision"\n\xff\xfe\n[]\n{"at": "x", "decision": "reset"}\n{"at": 1}\n{"at": 2.0, "decis'
        )
    record.add(decision="begun", id="b")
    record.add(decision="done", id="b")
    assert [(each["at"], each["id"]) for each in record.lines()] == [(1.0, "a"), (2.0, "b"), (3.0, "b")]


def test_the_kill_switch_is_on_the_record(tmp_path: Path) -> None:
    record = Record(tmp_path, lambda: 5.0)
    record.stop("mia")
    assert record.is_stopped() and record.resume("ada") and record.resume("ada")
    assert [(each["decision"], each["actor"], each["at"]) for each in record.lines()] == [
        ("stopped", "human:mia", 5.0), ("resumed", "human:ada", 5.0),
    ]  # fmt: skip
    record.path.unlink()
    record.path.mkdir()
    record.stop("mia")
    with pytest.raises(OSError):
        record.resume("mia")
    assert record.is_stopped()


def test_a_user_without_a_name_stops_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 65532")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert cli.main(["agent", "stop", "--reports", str(tmp_path)]) == 0
    assert [each["actor"] for each in Record(tmp_path).lines()] == [f"human:uid {os.getuid()}"]
