"""The event log and the metrics file, on real files, full disks and folders that go away."""

import datetime
import json
import logging
import math
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from helpers import endpoints
from helpers.counting import calls
from helpers.made_by_hand import compilation, full_store
from prometheus_client.parser import text_string_to_metric_families

from jaxobs.base import guard
from jaxobs.base.config import Settings
from jaxobs.base.errors import SettingError
from jaxobs.exporters import event_log, metrics_file
from jaxobs.exporters.event_log import EventLog
from jaxobs.exporters.metrics_file import MetricsFile
from jaxobs.facts.compilations import CacheLookup, Change
from jaxobs.facts.memory import DeviceMemory
from jaxobs.facts.process import Exit, Manifest
from jaxobs.facts.steps import Step
from jaxobs.ops.diagnosis import Inputs, diagnose, gather
from jaxobs.state.store import Store

pytestmark = pytest.mark.usefixtures("fresh")

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def _lines(path: pathlib.Path) -> list[dict[str, Any]]:
    """The events of a log; every line must be one JSON object, and the last one whole."""
    text = path.read_text(encoding="utf-8")
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


_SECONDS = ("seconds", "least_seconds", "most_seconds", "median_seconds")


def _log(store: Store, path: object, **settings: Any) -> EventLog:
    return EventLog(store, Settings(**settings), str(path))


# ------------------------------------------------------------------------------------------------ event log


def test_every_line_begins_with_when_what_and_who(tmp_path: pathlib.Path) -> None:
    """`time` in UTC, `event`, `process_index` and `pid`, for events of every kind."""
    store, path = Store(), tmp_path / "events.jsonl"
    log = _log(store, path)
    store.record(Manifest(time=0.25, versions={"jax": "1"}))
    store.record(compilation())
    store.record(CacheLookup(time=1.0, function="f", result="hit"))
    store.record(DeviceMemory(time=1.0, device="gpu:0"))
    store.record(Exit(time=1.0, reason="normal"))
    log.close()
    lines = _lines(path)
    assert [line["event"] for line in lines] == ["manifest", "compilation", "cache_lookup", "memory", "exit"]
    assert lines[0]["time"] == "1970-01-01T00:00:00.250000Z"
    for line in lines:
        assert list(line)[:4] == ["time", "event", "process_index", "pid"]
        assert RFC3339.fullmatch(line["time"])
        assert datetime.datetime.fromisoformat(line["time"]).tzinfo == datetime.timezone.utc
        assert (line["process_index"], line["pid"]) == (0, os.getpid())


def test_a_compilation_has_the_fields_of_the_contract(tmp_path: pathlib.Path) -> None:
    """With `changes` as objects, phases that did not run absent, and unknown numbers as null."""
    store, path = Store(), tmp_path / "events.jsonl"
    log = _log(store, path)
    change = Change("batch['image']", "shape", "float32[128,28]", "float32[96,28]")
    store.record(
        compilation(
            cause="shape", reason="Argument `batch['image']` is smaller.\nPad it — “always”.", changes=(change,),
            phases={"trace": 0.5, "cache_load": math.nan}, cache="hit", call_site="train.py:7", fingerprint="ab12",
        )
    )  # fmt: skip
    log.close()
    [line] = _lines(path)
    assert line["changes"] == [
        {"path": "batch['image']", "what": "shape", "before": "float32[128,28]", "after": "float32[96,28]"}
    ]
    assert line["phases"] == {"trace": 0.5, "cache_load": None}
    contract = "function cause reason changes phases cache uncached_because call_site fingerprint eager sequence"
    assert set(contract.split()) <= set(line)
    assert line["reason"].startswith("Argument `batch['image']` is smaller.\nPad")
    assert (line["uncached_because"], line["eager"], line["sequence"]) == (None, False, 1)


def test_it_appends_to_what_is_there_and_makes_its_folder(tmp_path: pathlib.Path) -> None:
    """A restarted job goes on in the same file."""
    path = tmp_path / "deep" / "er" / "events.jsonl"
    for _ in range(2):
        store = Store()
        log = _log(store, path)
        store.record(compilation())
        log.close()
    assert [line["sequence"] for line in _lines(path)] == [1, 1]


def test_after_a_line_that_was_cut_off_a_new_line_begins(tmp_path: pathlib.Path) -> None:
    """A process that was killed in the middle of a write spoils its own line, not ours."""
    path = tmp_path / "events.jsonl"
    path.write_text('{"event": "manif', encoding="utf-8")
    store = Store()
    log = _log(store, path)
    store.record(compilation())
    store.record(compilation())
    log.close()
    first, *ours = path.read_text(encoding="utf-8").splitlines()
    assert first == '{"event": "manif'
    assert [json.loads(line)["sequence"] for line in ours] == [1, 2]


def test_sixteen_threads_write_whole_lines_and_each_event_once(tmp_path: pathlib.Path) -> None:
    store, path = Store(), tmp_path / "events.jsonl"
    log = _log(store, path)

    def work() -> None:
        for _ in range(100):
            store.record(compilation(reason="x" * 3000))

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    assert sorted(line["sequence"] for line in _lines(path)) == list(range(1, 1601))


MOST_CALLS_TO_LOG = 95
WRITER = """
import sys
from jaxobs.base.config import Settings
from jaxobs.exporters.event_log import EventLog
from jaxobs.facts.compilations import Compilation
from jaxobs.state.store import Store
store = Store()
log = EventLog(store, Settings(), sys.argv[1])
for number in range(400):
    store.record(Compilation(time=1.0, function="f", cause="shape", reason="x" * (number * 40)))
log.close()
"""


def test_four_processes_share_a_file(tmp_path: pathlib.Path) -> None:
    """All processes of a host may be given the same log: whole lines, none lost."""
    path = tmp_path / "events.jsonl"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path)]) for _ in range(4)]
    assert [writer.wait(120) for writer in writers] == [0, 0, 0, 0]
    assert Counter(line["pid"] for line in _lines(path)) == {writer.pid: 400 for writer in writers}


def test_it_stops_growing_at_its_bound_and_counts_the_rest(tmp_path: pathlib.Path) -> None:
    """Nothing beyond the bound, nothing torn at it, and room counts what is in the file already."""
    store, path = Store(), tmp_path / "events.jsonl"
    log = _log(store, path, event_log_max_bytes=4000)
    for _ in range(50):
        store.record(compilation())
    log.close()
    assert 3000 < path.stat().st_size <= 4000
    written = len(_lines(path))
    assert store.snapshot().observer.dropped == {"event_log_max_bytes": 50 - written}
    assert guard.internal_errors() == {}


def test_a_file_that_was_moved_or_removed_is_begun_anew(tmp_path: pathlib.Path) -> None:
    """Tools that rotate logs move files: no event is written where nobody looks."""
    store, path = Store(), tmp_path / "events.jsonl"
    log = _log(store, path)
    store.record(compilation())
    assert log.flush()
    path.rename(tmp_path / "events.jsonl.1")
    store.record(compilation())
    assert log.flush()
    path.unlink()
    store.record(compilation())
    log.close()
    assert [line["sequence"] for line in _lines(tmp_path / "events.jsonl.1")] == [1]
    assert [line["sequence"] for line in _lines(path)] == [3]
    assert guard.internal_errors() == {}


def test_a_folder_that_goes_away_costs_events_and_nothing_else(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Counted, logged once, nothing raised; when the folder is back, so is the log."""
    store, folder = Store(), tmp_path / "logs"
    log = _log(store, folder / "events.jsonl")
    store.record(compilation())
    assert log.flush()
    (folder / "events.jsonl").unlink()
    folder.rmdir()
    for _ in range(3):
        store.record(compilation())
        assert log.flush()
    assert store.snapshot().observer.dropped == {"event_log_write": 3}
    assert guard.internal_errors() == {"event_log": 3}
    [record] = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "events.jsonl" in record.getMessage()
    folder.mkdir()
    store.record(compilation())
    log.close()
    assert [line["sequence"] for line in _lines(folder / "events.jsonl")] == [5]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_costs_events_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every write fails, every event is counted, and the program never hears of it: whoever asks for its state does."""
    store = Store()
    log = _log(store, "/dev/full")
    for _ in range(5):
        store.record(compilation())
    log.close()
    assert store.snapshot().observer.dropped == {"event_log_write": 5}
    assert guard.internal_errors().keys() == {"event_log"}
    store.record(Step(time=time.time() + 1, loop="train", count=9, last=9, **dict.fromkeys(_SECONDS, 1.0)))
    with endpoints.serving(store) as handle:
        [cause] = diagnose(gather(Inputs(targets=(handle.url,)))).causes
        now = time.time() + 700
        monkeypatch.setattr("jaxobs.state.store.time.time", lambda: now)
        assert not diagnose(gather(Inputs(targets=(handle.url,)))).causes, "it was ten minutes ago"
    assert cause.id == "disk_full" and "[Errno 28]" in cause.evidence[0].text and "/dev/full" in cause.evidence[0].text


@pytest.fixture
def small_disk() -> Iterator[Callable[[int], None]]:
    """Lets no file of this process grow beyond a size: a write that meets it is cut off, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def test_a_line_that_fits_in_part_is_taken_back(tmp_path: pathlib.Path, small_disk: Callable[[int], None]) -> None:
    """The disk fills in the middle of a line: every line that is there stays whole, also those after there is room."""
    store, path = Store(), tmp_path / "events.jsonl"
    log = _log(store, path)
    store.record(compilation())
    assert log.flush()
    size = path.stat().st_size
    small_disk(size * 2 + 10)
    for _ in range(4):
        store.record(compilation())
    assert log.flush()
    dropped = store.snapshot().observer.dropped["event_log_write"]
    assert [line["sequence"] for line in _lines(path)] == [1, 2]
    assert dropped == 3
    small_disk(size * 100)
    store.record(compilation())
    log.close()
    assert [line["sequence"] for line in _lines(path)] == [1, 2, 6]


def test_after_closing_nothing_is_written_and_nothing_stays_open(tmp_path: pathlib.Path) -> None:
    """An event that was recorded before and comes late, from another thread, is not lost."""
    store, path = Store(), tmp_path / "events.jsonl"
    open_before = len(os.listdir("/proc/self/fd"))
    log = _log(store, path)
    late = store.record(compilation())
    log.close()
    store.record(compilation())
    log._write(late)
    assert log.flush()
    assert [line["sequence"] for line in _lines(path)] == [1, 1]
    assert len(os.listdir("/proc/self/fd")) == open_before


@pytest.mark.parametrize("make", [EventLog, MetricsFile], ids=["event_log", "metrics_file"])
@pytest.mark.parametrize("place", ["folder", "below a file", "long name"])
def test_a_place_that_cannot_be_written_is_refused_at_once(
    tmp_path: pathlib.Path, make: Callable[..., object], place: str
) -> None:
    """In `install`, not hours later; the message names setting, path and reason."""
    (tmp_path / "file").touch()
    path = {"folder": tmp_path, "below a file": tmp_path / "file" / "x", "long name": tmp_path / ("x" * 300)}[place]
    setting = "event_log" if make is EventLog else "metrics_file"
    with pytest.raises(SettingError) as caught:
        make(Store(), Settings(), str(path))
    message = str(caught.value)
    assert message.startswith(f"`{setting}` is {str(path)!r}, which cannot be written: ")
    assert "None" not in message
    assert message.endswith("Name a file in a directory that this process may write to.")


def test_a_signal_handler_may_record_while_an_event_is_written(tmp_path: pathlib.Path) -> None:
    """The program's handler runs between two lines of ours, on the same thread: it must not wait for itself."""
    store, path = Store(), tmp_path / "events.jsonl"
    log = _log(store, path)

    def handler(number: int, frame: object) -> None:
        store.record(compilation("from_handler"))

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        for _ in range(500):
            store.record(compilation("from_program"))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    log.close()
    lines = _lines(path)
    assert sorted(line["sequence"] for line in lines) == list(range(1, len(lines) + 1))
    assert Counter(line["function"] for line in lines)["from_program"] == 500


# --------------------------------------------------------------------------------------------- metrics file


def _metrics(path: pathlib.Path) -> dict[str, float]:
    families = text_string_to_metric_families(path.read_text(encoding="utf-8"))
    return {f"{s.name}{s.labels or ''}": s.value for family in families for s in family.samples}


def _file(store: Store, path: object, **settings: Any) -> MetricsFile:
    return MetricsFile(store, Settings(**settings), str(path))


def test_it_is_written_at_the_end(tmp_path: pathlib.Path) -> None:
    """Without an interval it is not written before; who collects it can read it."""
    store, path = full_store(), tmp_path / "deep" / "jaxobs.prom"
    written = _file(store, path)
    written.sample()
    assert not path.exists()
    assert written.every == math.inf
    written.close()
    assert _metrics(path)["jax_function_calls_total{'function': 'train.step'}"] == 3
    assert path.stat().st_mode & 0o777 == 0o644
    assert os.listdir(path.parent) == ["jaxobs.prom"]


def test_a_reader_never_sees_half_a_file(tmp_path: pathlib.Path) -> None:
    """Read in a loop while it is replaced: complete every time, and never older than before."""
    store, path = full_store(), tmp_path / "jaxobs.prom"
    written = _file(store, path, metrics_interval=0.01)
    written.write()
    stop = threading.Event()

    def replace() -> None:
        while not stop.is_set():
            next(store.call_stats("train.step").counter)
            written.sample()

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        before, last, reads = 0.0, "", 0
        until = time.monotonic() + 120
        while reads < 400 or (before <= 3 and time.monotonic() < until):
            reads += 1
            text = path.read_text(encoding="utf-8")
            assert text.endswith("\n") and "jaxobs_capability{" in text
            if text != last:
                now = _metrics(path)["jax_function_calls_total{'function': 'train.step'}"]
                assert now >= before
                before, last = now, text
    finally:
        stop.set()
        writer.join()
    assert before > 3
    written.close()
    assert os.listdir(tmp_path) == ["jaxobs.prom"]


def test_a_failed_write_leaves_the_old_file_and_the_program_alone(
    tmp_path: pathlib.Path, small_disk: Callable[[int], None]
) -> None:
    """Full disk: counted, logged, no leftovers."""
    store, path = full_store(), tmp_path / "jaxobs.prom"
    written = _file(store, path)
    written.write()
    before = path.read_bytes()
    small_disk(100)
    written.write()
    written.close()
    small_disk(10**9)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["jaxobs.prom"]
    assert store.snapshot().observer.dropped["metrics_file_write"] == 2
    assert guard.internal_errors()["metrics_file"] == 2


def test_a_folder_that_goes_away_costs_the_file_and_nothing_else(tmp_path: pathlib.Path) -> None:
    """Counted; written again when the folder is back."""
    store, folder = full_store(), tmp_path / "metrics"
    written = _file(store, folder / "jaxobs.prom")
    shutil.rmtree(folder)
    written.write()
    assert guard.internal_errors()["metrics_file"] == 1
    folder.mkdir()
    written.close()
    assert _metrics(folder / "jaxobs.prom")["jaxobs_internal_errors_total{'where': 'metrics_file'}"] == 1


def test_a_link_stays_a_link(tmp_path: pathlib.Path) -> None:
    """The target of the link is replaced."""
    target, link = tmp_path / "real" / "x.prom", tmp_path / "x.prom"
    target.parent.mkdir()
    target.touch()
    link.symlink_to(target)
    _file(full_store(), link).close()
    assert link.is_symlink()
    assert _metrics(target)


def test_a_device_or_pipe_is_written_to_and_not_replaced(tmp_path: pathlib.Path) -> None:
    """`/dev/stdout` is asked for easily, and a file renamed over a device would outlive the program."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        _file(full_store(), pipe).close()
        assert os.read(reader, 65536).startswith(b"# HELP")
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    program = (
        "import jaxobs.exporters.metrics_file as m, jaxobs.state.store as s, jaxobs.base.config as c\n"
        "m.MetricsFile(s.Store(), c.Settings(), '/dev/stdout').close()"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout.startswith("# HELP")
    assert not os.path.isfile("/dev/null")


def test_a_forked_child_does_not_write_the_parents_file(tmp_path: pathlib.Path) -> None:
    store, path = full_store(), tmp_path / "jaxobs.prom"
    written = _file(store, path, metrics_interval=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX and newer versions of Python warn of any fork
        child = os.fork()
    if child == 0:
        written.after_fork()
        written.sample()
        written.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert not path.exists()


# ---------------------------------------------------------------------------------------------- every exporter


def test_exporters_are_made_only_where_the_settings_want_them(tmp_path: pathlib.Path) -> None:
    store = Store()
    assert event_log.exporter(store, Settings()) is None
    assert metrics_file.exporter(store, Settings(metrics_interval=5.0)) is None
    log = event_log.exporter(store, Settings(event_log=str(tmp_path / "log")))
    written = metrics_file.exporter(store, Settings(metrics_file=str(tmp_path / "prom"), metrics_interval=5.0))
    assert log is not None and log.every == math.inf
    assert written is not None and written.every == 5.0
    log.close()
    written.close()


def test_writing_an_event_does_little(tmp_path: pathlib.Path) -> None:
    """Each compile pays for it: one write, and the same calls for the thousandth line as for the first ones."""
    alone, logged, event = Store(), Store(), compilation()
    path = tmp_path / "events.jsonl"
    log = _log(logged, path)
    for store in (alone, logged):
        store.record(event)

    def added() -> int:
        return calls(lambda: logged.record(event)).total() - calls(lambda: alone.record(event)).total()

    early = added()
    for store in (alone, logged):
        for _ in range(1000):
            store.record(event)
    assert added() <= early <= MOST_CALLS_TO_LOG
    made = calls(lambda: logged.record(event))
    assert sum(made[name] for name in ("C write", "C fsync", "C open")) <= 1
    log.close()
