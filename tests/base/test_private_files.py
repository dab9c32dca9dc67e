"""Files of jaxobs are for their owner alone, whatever the umask; files that are there keep their mode."""

import os
import pathlib
import stat
from collections.abc import Iterator

import pytest
from helpers.made_by_hand import compilation

from jaxobs import cli
from jaxobs.actions.capturing.folder import Folder
from jaxobs.base import private_files
from jaxobs.base.config import Settings
from jaxobs.exporters.event_log import EventLog
from jaxobs.exporters.metrics_file import MetricsFile
from jaxobs.reasons.cache_records import KeyRecord, Sidecar
from jaxobs.recorder import predecessors
from jaxobs.recorder.predecessors import Attempt
from jaxobs.recorder.report_files import ReportFiles
from jaxobs.state.runs import Earlier
from jaxobs.state.store import Store


@pytest.fixture(params=[0o000, 0o022, 0o277], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    """Takes nothing, what is usual, and what would take the owner's own right to write."""
    before = os.umask(request.param)
    yield
    os.umask(before)


def modes(folder: pathlib.Path) -> dict[str, str]:
    """Returns the modes of all below a folder."""
    return {str(each.relative_to(folder)): oct(stat.S_IMODE(each.stat().st_mode)) for each in folder.rglob("*")}


def attempt() -> Attempt:
    """Any."""
    return Attempt(
        earlier=Earlier(), pid=1, hostname="h", started=1.0, updated=2.0, seconds={}, unsaved_seconds=0.0,
        unsaved_steps=0, checkpoints=0,
    )  # fmt: skip


@pytest.mark.usefixtures("umask")
def test_every_file_is_private(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Event log, report, last minutes, run file, sidecar, captures; only a metrics file for node_exporter is not."""
    folder = tmp_path / "new" / "folders"
    log = folder / "events.jsonl"
    settings = Settings(event_log=str(log), flight_recorder=str(folder / "recorder"))
    store = Store(settings)
    writer = EventLog(store, settings, str(log))
    store.record(compilation())
    writer.close()
    for name in ("metrics.prom", "metrics.txt"):
        MetricsFile(store, settings, str(folder / "metrics" / name)).close()
    written = ReportFiles(store, "last-minutes").write(1.0, 0, "text")
    assert written is not None
    predecessors.write_attempt(str(folder / "run.json"), "r", attempt())
    sidecar = Sidecar(str(folder), most_bytes=1)
    sidecar.add(KeyRecord(function="f", key="k", time=1.0, process="p"))
    captures = Folder(Settings(capture_directory=str(folder / "captures")))
    captures.room()
    with captures.writing("memory-20260101T000000Z-0-1-1", 10_000) as unfinished:
        pathlib.Path(unfinished, "profile").write_text("x")
    assert cli.main(["report", str(log), "--out", str(folder / "report.html")]) == 0
    capsys.readouterr()
    found = modes(tmp_path)
    assert found.pop("new/folders/metrics/metrics.prom") == "0o644"
    assert len(found) == 13, found
    assert {
        name: mode for name, mode in found.items() if mode != ("0o700" if (tmp_path / name).is_dir() else "0o600")
    } == {}


def test_what_is_there_keeps_its_mode(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log or report that a collector may read stays readable: somebody did so on purpose."""
    log, prom, report, run = (tmp_path / name for name in ("e.jsonl", "m.prom", "r.html", "run.json"))
    for path in (log, prom, report, run):
        path.touch()
        path.chmod(0o640)
    tmp_path.chmod(0o755)
    settings = Settings(event_log=str(log))
    store = Store(settings)
    writer = EventLog(store, settings, str(log))
    store.record(compilation())
    writer.close()
    MetricsFile(store, settings, str(prom)).close()
    predecessors.write_attempt(str(run), "r", attempt())
    assert cli.main(["report", str(log), "--out", str(report)]) == 0
    capsys.readouterr()
    assert set(modes(tmp_path).values()) == {"0o640"}
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    private_files.make_folders(tmp_path / "file")
    with pytest.raises(FileExistsError):
        private_files.make_folders(log / "below") if log.is_dir() else private_files.make_folders(log)
