"""The folder of reports: what is old is removed where the agent was told so, and nothing else is."""

import time
from pathlib import Path

import pytest

from jaxobs import cli
from jaxobs.ops.agent.incidents import Incident
from jaxobs.ops.agent.store import Store


def incident(days: float) -> Incident:
    began = time.time() - 86_400 * days
    name = time.strftime("%Y%m%d-%H%M%S", time.gmtime(began)) + "-train-1a2b3c"
    return Incident(id=name, subject=[("job", "train")], opened_at=began)


def test_old_reports_are_removed_when_an_incident_is_closed(tmp_path: Path) -> None:
    store = Store(str(tmp_path), keep_days=30)
    old, still_open, new = incident(40), incident(39), incident(2)
    for report in (old, still_open, new):
        for ending in (".json", ".md"):
            (tmp_path / f"{report.id}{ending}").write_text("{}")
    store.keep(still_open)
    store.keep(new)
    for name in ("20200101-notes.json", "notes.md", "actions.jsonl"):
        (tmp_path / name).write_text("mine")
    Store(str(tmp_path)).forget(incident(1))
    assert (tmp_path / f"{old.id}.json").exists(), "without the option everything is kept"
    store.forget(new)
    left = {path.name for path in tmp_path.iterdir() if path.is_file()}
    assert left == {
        f"{each.id}{ending}" for each in (still_open, new) for ending in (".json", ".md")
    } | {"20200101-notes.json", "notes.md", "actions.jsonl"}  # fmt: skip
    assert [each.id for each in store.open_incidents()] == [still_open.id]


@pytest.mark.parametrize("days", ["0", "-1", "nan"])
def test_a_time_that_is_none_is_refused(days: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["agent", "--prometheus", "http://127.0.0.1:9", "--reports", str(tmp_path), "--keep-days", days]
    assert cli.main(arguments) == 2
    assert "--keep-days is a number of days" in capsys.readouterr().err
