"""`collect_bundle`: a file that gives the same diagnosis anywhere, within a quota, for an incident and nothing else."""

from pathlib import Path

import pytest

from jaxobs.ops.agent.acting import actions, desk
from jaxobs.ops.agent.acting.actions import Request
from jaxobs.ops.agent.acting.policy import Policy
from jaxobs.ops.diagnosis import bundles

ALLOWED = Policy(allow=("A1",), dry_run=False, cooldown_seconds={"collect_bundle": 1.0}, per_job_an_hour=100)


def asked(folder: Path, incident: str = "i1", urls: tuple[str, ...] = ("http://127.0.0.1:9",)) -> desk.Decision:
    made = desk.Desk(directory=folder, policy=ALLOWED, targets=lambda job: list(urls))
    return made.request(Request(action="collect_bundle", actor="rule:test", job="train", incident=incident))


def test_a_bundle_is_there(tmp_path: Path) -> None:
    decision = asked(tmp_path)
    assert decision.decision == "done" and decision.path == str(tmp_path / "bundles" / "i1.tar.gz"), decision
    with bundles.opened(decision.path) as bundle:
        assert bundle.manifest.targets == ("http://127.0.0.1:9",)
        assert bundle.diagnosis().verdict == "inconclusive"


@pytest.mark.parametrize("incident", ["", "../etc", "a/b", "a\nb", ".hidden", "x" * 101])
def test_a_name_that_is_none_of_an_incident(tmp_path: Path, incident: str) -> None:
    decision = asked(tmp_path / "reports", incident)
    assert decision.decision == "refused" and "for an incident" in decision.reason
    assert not list(tmp_path.rglob("*.tar.gz"))


def test_no_source_and_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "nothing to collect" in asked(tmp_path, urls=()).reason
    monkeypatch.setattr(actions, "MOST_BUNDLES", 1)
    (tmp_path / "bundles").mkdir()
    (tmp_path / "bundles" / "old.tar.gz").write_bytes(b"x")
    assert "Move some of them away" in asked(tmp_path).reason
