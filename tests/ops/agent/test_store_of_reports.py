"""The folder of reports: what is old is removed where the agent was told so, and nothing else is."""

import time
from pathlib import Path

import pytest
from helpers.written_reports import made

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


def test_the_oldest_closed_reports_give_way_to_new_ones(tmp_path: Path) -> None:
    """Reports of open incidents stay; once nothing else is left, the store says that it has too much."""
    one = made(0)
    Store(str(tmp_path / "one")).write_report(one)
    size = sum(path.stat().st_size for path in (tmp_path / "one").glob(f"{one.id}.*"))
    folder, removed = tmp_path / "all", []
    store = Store(str(folder), keep_bytes=4.5 * size)
    store.removed = lambda: removed.append(1)
    (folder / "notes.md").write_text("x" * 9 * size)
    still_open = incident(9)
    store.keep(still_open)
    store.write_report(made(9).model_copy(update={"id": still_open.id}))
    for days in (8, 7, 6, 5, 4):
        store.write_report(made(days))
    assert sorted(store.names()) == sorted([still_open.id, *(made(days).id for days in (6, 5, 4))])
    assert (len(removed), store.is_over) == (2, False)
    assert {path.stem for path in folder.glob("*.md")} == {*store.names(), "notes"}
    for days in (6, 5, 4):
        store.keep(incident(days).model_copy(update={"id": made(days).id}))
    new = incident(1)
    store.keep(new)
    store.write_report(made(1).model_copy(update={"id": new.id}))
    assert (len(store.names()), store.is_over) == (5, True)
    store.forget(still_open)
    assert len(store.names()) == 5, "its end is still to be sent"
    store.forget(new)
    assert (still_open.id in store.names(), len(removed), store.is_over) == (False, 3, False)


@pytest.mark.parametrize("number", ["0", "-1", "nan"])
@pytest.mark.parametrize(("option", "unit"), [("--keep-days", "days"), ("--keep-mb", "megabytes")])
def test_a_bound_that_is_none_is_refused(
    option: str, unit: str, number: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["agent", "--prometheus", "http://127.0.0.1:9", "--reports", str(tmp_path), option, number]
    assert cli.main(arguments) == 2
    assert f"{option} is a number of {unit}" in capsys.readouterr().err
