"""A process that is busy at this moment: it is looked at again before an action is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxobs.ops.agent.acting import desk, processes
from jaxobs.ops.agent.acting.declarations import Outcome, Request
from jaxobs.ops.agent.acting.known import known
from jaxobs.ops.agent.acting.policy import Policy

URL = "http://127.0.0.1:9"
ALL = Policy(allow=("A1",), dry_run=False)


@pytest.mark.parametrize(("busy", "decision"), [(3, "done"), (10_000, "refused")])
def test_a_process_that_compiles_in_each_step_has_moments_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: int, decision: str
) -> None:
    """What recompiles again and again is just what is worth a profile; one that compiles all the time is left alone."""
    said = iter(["It compiles."] * busy + [None] * 10)
    monkeypatch.setattr(desk, "PATIENCE", 1.0)
    monkeypatch.setattr(desk, "PAUSE", 0.05)
    monkeypatch.setattr(processes, "look", lambda url: None)
    monkeypatch.setattr(processes, "unsuitable", lambda snapshot, now: next(said))
    monkeypatch.setattr(processes, "typical_step", lambda snapshot: None)
    monkeypatch.setattr(known()["capture_profile"], "run", lambda *_: Outcome(result="done", detail="5 steps."))
    request = Request(
        action="capture_profile", actor="rule:recompilation", target=URL, job="train", incident="i1", why="Why."
    )
    found = desk.Desk(tmp_path, ALL, lambda job: [URL]).request(request)
    assert found.decision == decision, found.reason
