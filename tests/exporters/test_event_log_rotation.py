"""Event logs in several files: by one process and by several at once, what the disk gets, and what readers see."""

import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.made_by_hand import compilation
from helpers.paths import ROOT
from helpers.waiting import until

from jaxobs.base.config import Settings
from jaxobs.base.files import rotated
from jaxobs.base.files.appended import AppendedFile
from jaxobs.base.json_lines import Damage, objects
from jaxobs.cli import main
from jaxobs.compile_cache.warming import records
from jaxobs.exporters import event_log
from jaxobs.exporters.event_log import EventLog
from jaxobs.facts.process import Manifest
from jaxobs.ops.diagnosis import gathering
from jaxobs.state.store import Store
from jaxobs.views import report

pytestmark = pytest.mark.usefixtures("fresh")


def written(path: Path, count: int, **settings: Any) -> Store:
    """A store whose events went to a log."""
    store = Store()
    log = EventLog(store, Settings(event_log=str(path), **settings), str(path))
    for number in range(count):
        store.record(compilation(f"train.f{number}"))
        if number % 10 == 0:
            log.flush()  # else they may all go in one write
    log.close()
    return store


def sequences(path: Path) -> list[int]:
    """The numbers of a set's events, as they are read."""
    damage = Damage()
    with rotated.opened(path) as file:
        found = [body["sequence"] for _, body in objects(file, damage)]
    assert damage.count == 0
    return found


def test_a_full_log_is_followed_by_another(tmp_path: Path) -> None:
    """Nothing is lost or doubled while all files are kept, and none is larger than it may be."""
    path = tmp_path / "events.jsonl"
    store = written(path, 200, event_log_max_bytes=8192, event_log_files=100)
    files = rotated.paths(path)
    assert len(files) > 5 and files[-1] == str(path) and files[-2] == f"{path}.1"
    assert sequences(path) == list(range(1, 201))
    assert all(os.path.getsize(each) <= 8192 for each in files)
    assert all(os.stat(each).st_mode & 0o777 == 0o600 for each in files)
    assert store.snapshot().observer.dropped == {}


def test_only_so_many_are_kept_and_what_goes_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    store = written(path, 200, event_log_max_bytes=8192, event_log_files=2)
    assert [os.path.basename(each) for each in rotated.paths(path)] == ["events.jsonl.2", "events.jsonl.1", path.name]
    found = sequences(path)
    assert found == list(range(found[0], 201)) and found[0] > 1
    assert store.snapshot().observer.dropped["event_log_files"] >= 3
    # Fewer than there are: the surplus goes.
    written(path, 100, event_log_max_bytes=8192, event_log_files=1)
    assert [os.path.basename(each) for each in rotated.paths(path)] == ["events.jsonl.1", path.name]


def test_the_manifest_outlives_the_file_that_began_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader of what is left still knows the program and its versions, and takes it for one process."""
    monkeypatch.setattr(event_log, "MANIFEST_BYTES", 0)
    path, store = tmp_path / "events.jsonl", Store()
    settings = Settings(event_log_max_bytes=8192, event_log_files=1)
    log = EventLog(store, settings, str(path))
    store.record(Manifest(time=1.0, program="train.py", versions={"jax": "0.9"}))
    for number in range(200):
        store.record(compilation(f"train.f{number}"))
        log.flush()
    log.close()
    [process] = report.read(str(path)).processes
    assert process.manifest is not None and process.manifest.program == "train.py"
    assert len(process.compilations) < 100


def test_without_rotation_it_stops_growing(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    store = written(path, 200, event_log_max_bytes=8192)
    assert rotated.paths(path) == [str(path)]
    assert os.path.getsize(path) <= 8192
    assert store.snapshot().observer.dropped["event_log_max_bytes"] == 200 - len(sequences(path))


def test_a_line_larger_than_a_file_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    store = Store()
    log = EventLog(store, Settings(event_log_max_bytes=4096, event_log_files=3), str(path))
    for reason in ("a", "b" * 5000, "c"):
        store.record(compilation("f", reason=reason))
        log.flush()
    log.close()
    assert sequences(path) == [1, 3]
    assert store.snapshot().observer.dropped == {"event_log_max_bytes": 1}


WRITER = """
import sys
from collections import deque
from jaxobs.base.files.appended import AppendedFile
path, who, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
file = AppendedFile(path, 4000, keep=1000)
for number in range(count):
    lines = deque([('{"who": "%s", "number": %d, "filler": "%s"}\\n' % (who, number, "x" * (number % 90))).encode()])
    while lines:
        written = file.append(lines)
        assert written.error is None and not written.lost and not written.beyond, written
"""


@pytest.mark.slow
def test_processes_that_share_a_log_lose_and_mix_nothing(tmp_path: Path) -> None:
    """Four write and rotate at once, hundreds of times: each line is there once, whole, and in its writer's order."""
    path = tmp_path / "events.jsonl"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(each), "2000"], cwd=ROOT) for each in range(4)
    ]
    assert [each.wait(300) for each in writers] == [0, 0, 0, 0]
    files = rotated.paths(path)
    assert len(files) > 100
    assert all(os.path.getsize(each) < 4000 + 4 * 150 for each in files), "by a line of each process at most"
    damage = Damage()
    with rotated.opened(path) as file:
        bodies = [body for _, body in objects(file, damage)]
    assert damage.count == 0
    for each in range(4):
        assert sorted(body["number"] for body in bodies if body["who"] == str(each)) == list(range(2000))


def test_a_reader_sees_each_line_once_while_files_are_renamed(tmp_path: Path) -> None:
    """A reader sees what was there when it opened the log, whatever is renamed meanwhile."""
    path, stop = tmp_path / "events.jsonl", threading.Event()
    file = AppendedFile(str(path), 2000, keep=1000)
    number = 0

    def write() -> None:
        nonlocal number
        while not stop.is_set() and number < 5000:
            lines = deque([json.dumps({"number": number, "filler": "x" * 50}).encode() + b"\n"])
            while lines:
                file.append(lines)
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        until(lambda: number > 100)
        for _ in range(10):
            before = number
            with rotated.opened(path) as whole:
                found = [body["number"] for _, body in objects(whole, Damage())]
            assert found == list(range(len(found))) and len(found) >= before - 1
    finally:
        stop.set()
        writer.join()


def test_a_torn_last_line_costs_itself_alone(tmp_path: Path) -> None:
    """A process was killed while it wrote, and the file was renamed afterwards."""
    (tmp_path / "log.2").write_bytes(b'{"a": 1}\n{"a": ')
    (tmp_path / "log.1").write_bytes(b'{"a": 2}\n')
    (tmp_path / "log.10").write_bytes(b'{"a": 0}\n')
    (tmp_path / "log.old").write_bytes(b'{"a": 9}\n')
    damage = Damage()
    with rotated.opened(tmp_path / "log") as file:  # none is written at this moment
        assert [body["a"] for _, body in objects(file, damage)] == [0, 1, 2]
    assert damage.count == 1
    with pytest.raises(FileNotFoundError), rotated.opened(tmp_path / "other"):
        pass


@pytest.mark.parametrize(
    ("policy", "expected"), [("never", lambda n: n == 0), ("interval", lambda n: n == 2), ("always", lambda n: n >= 20)]
)
def test_what_is_brought_to_the_disk_and_when(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str, expected: Callable[[int], bool]
) -> None:
    """Each write, each second in which something was written (here one) and the end, or nothing."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    store = Store()
    log = EventLog(store, Settings(event_log_fsync=policy), str(tmp_path / "events.jsonl"))
    assert (log.every == 1.0) == (policy == "interval")
    for _ in range(20):
        store.record(compilation("f"))
        log.flush()
    if policy == "interval":
        for _ in range(3):
            log.sample()
            log.flush()
        store.record(compilation("f"))
    log.close()
    assert expected(len(synced)), len(synced)


# ----------------------------------------------------------------------------------------------------- readers


SCRIPT = """
import jax, jax.numpy as jnp, jaxobs
@jaxobs.jit
def step(x): return x * 2 + 1
for size in range(1, 30): step(jnp.zeros(size))
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The log of a real program, and the same run's log in several files."""
    folder = tmp_path_factory.mktemp("logs")
    (folder / "train.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "jaxobs", "run", "--port", "0", "--event-log", str(folder / "whole.jsonl")]
    subprocess.run([*command, str(folder / "train.py")], cwd=ROOT, check=True, timeout=300)
    lines = (folder / "whole.jsonl").read_bytes().splitlines(keepends=True)
    cut = len(lines) // 3
    (folder / "parts").mkdir()
    for name, part in {"": lines[2 * cut :], ".1": lines[cut : 2 * cut], ".2": lines[:cut]}.items():
        (folder / "parts" / f"whole.jsonl{name}").write_bytes(b"".join(part))
    return folder / "whole.jsonl", folder / "parts" / "whole.jsonl"


def test_readers_see_a_set_as_one_log(logs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """`explain`, `report`, `diagnose`, `compare` and `cache warm` say of both the same."""
    whole, parts = logs
    told = []
    for path in logs:
        main(["explain", "--json", str(path)])
        out = path.parent / "out.html"
        main(["report", "--json", str(path), "--out", str(out)])
        told.append(capsys.readouterr().out.replace(str(out), "").replace(str(path), ""))
    assert told[0] == told[1]
    assert '"compilations": ' in told[0]
    assert [len(each.compilations) for each in report.read(str(whole)).processes] == [
        len(each.compilations) for each in report.read(str(parts)).processes
    ]
    assert main(["compare", str(whole), str(parts)]) == 0
    assert [each.function for each in records.read(whole).recorded] == [
        each.function for each in records.read(parts).recorded
    ]
    evidence = [
        gathering.collect(gathering.Inputs(event_logs=given), [], [])
        for given in ((str(whole),), (str(parts), f"{parts}.1", f"{parts}.2"))
    ]
    assert [(each.name, each.text) for each in evidence[0].observations] == [
        (each.name, each.text) for each in evidence[1].observations
    ]


def test_a_running_program_rotates(tmp_path: Path) -> None:
    """By the variables, end to end."""
    (tmp_path / "train.py").write_text(SCRIPT)
    path = tmp_path / "events.jsonl"
    environment = {
        **os.environ, "JAXOBS_EVENT_LOG": str(path), "JAXOBS_EVENT_LOG_MAX_BYTES": "20000",
        "JAXOBS_EVENT_LOG_FILES": "50", "JAXOBS_EVENT_LOG_FSYNC": "interval",
    }  # fmt: skip
    command = [sys.executable, "-m", "jaxobs", "run", "--port", "0", str(tmp_path / "train.py")]
    subprocess.run(command, cwd=ROOT, check=True, timeout=300, env=environment)
    assert len(rotated.paths(path)) > 2
    found = sequences(path)
    assert found == list(range(1, len(found) + 1))
    [process] = report.read(str(path)).processes
    assert process.exit is not None and process.manifest is not None
