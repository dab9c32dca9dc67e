"""Pipes without readers, readers that stop, disks that do not answer: they cost lines, which are counted."""

import contextlib
import json
import logging
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.made_by_hand import compilation, full_store
from helpers.run_programs import environment

from jaxobs import internals
from jaxobs.base import guard
from jaxobs.base.config import Settings
from jaxobs.base.errors import SettingError
from jaxobs.base.files import appended, line_queue
from jaxobs.base.files.patience import Patience
from jaxobs.exporters import metrics_file
from jaxobs.exporters.event_log import EventLog
from jaxobs.exporters.metrics_file import MetricsFile
from jaxobs.recorder import report_files
from jaxobs.sources import run as run_source
from jaxobs.sources.support import cache_lookups
from jaxobs.state.store import Store

pytestmark = pytest.mark.usefixtures("fresh")

HANGS = 60
"""Seconds after which a program counts as blocked."""


@pytest.fixture
def pipe(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_queue, "STALLED_PATIENCE", 0.2)
    monkeypatch.setattr(line_queue, "PATIENCE", 0.2)
    monkeypatch.setattr("jaxobs.exporters.event_log.OPEN_SECONDS", 0.2)
    monkeypatch.setattr(metrics_file, "WRITE_SECONDS", 0.2)
    monkeypatch.setattr(metrics_file, "READER_SECONDS", 0.2)


def _log(store: Store, path: object) -> EventLog:
    return EventLog(store, Settings(), str(path))


def _dropped(store: Store) -> dict[str, int]:
    return dict(store.snapshot().observer.dropped)


@contextlib.contextmanager
def _reading(path: pathlib.Path) -> Iterator[int]:
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield reader
    finally:
        os.close(reader)


def _read_lines(reader: int, most: int) -> list[dict[str, Any]]:
    data = b""
    until = time.monotonic() + HANGS
    while data.count(b"\n") < most and time.monotonic() < until:
        with contextlib.suppress(BlockingIOError):
            data += os.read(reader, 65536)
        time.sleep(0.01)
    return [json.loads(line) for line in data.splitlines()]


# ------------------------------------------------------------------------------------------------ whole programs

PROGRAM = """
import os, signal, sys, time
import jaxobs
jaxobs.install()
import jax
jax.jit(lambda x: x + 1)(1.0)
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
print("worked", flush=True)
{end}
"""

SIGTERM = "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)"
ENDS = [("none", "", 0), ("none", SIGTERM, -signal.SIGTERM), ("stalled", "raise ValueError", 1), ("stalled", "", 0)]


@pytest.mark.parametrize(("reader", "end", "code"), ENDS)
def test_a_pipe_never_holds_the_program(tmp_path: pathlib.Path, reader: str, end: str, code: int) -> None:
    """Neither its start, nor its work, nor a fork, nor its end, however it ends."""
    log, metrics = tmp_path / "log", tmp_path / "metrics"
    with contextlib.ExitStack() as held:
        for path in (log, metrics):
            os.mkfifo(path)
            if reader == "stalled":
                held.enter_context(_reading(path))
                full = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                held.callback(os.close, full)
                with contextlib.suppress(BlockingIOError):
                    while os.write(full, b"x" * 4096):
                        pass
        ran = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PROGRAM.format(end=end)],
            env=environment(JAXOBS_EVENT_LOG=str(log), JAXOBS_METRICS_FILE=str(metrics)),
            capture_output=True, text=True, timeout=HANGS, check=False,
        )  # fmt: skip
    assert (ran.stdout, ran.returncode) == ("worked\n", code)


def test_a_reader_gets_every_line_in_order(pipe: pathlib.Path) -> None:
    """Lines that were written before it came count, too, and the last one."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", PROGRAM.format(end="")],
        env=environment(JAXOBS_EVENT_LOG=str(pipe)), stdout=subprocess.PIPE, text=True,
    ) as program:  # fmt: skip
        assert program.stdout is not None and program.stdout.readline() == "worked\n"
        lines = [json.loads(line) for line in pipe.read_text(encoding="utf-8").splitlines()]
        assert program.wait(HANGS) == 0
    assert [line["sequence"] for line in lines] == list(range(1, len(lines) + 1))
    assert lines[-1]["event"] == "exit"
    assert "compilation" in {line["event"] for line in lines}


# ---------------------------------------------------------------------------------------------------- event log


def test_lines_wait_for_a_reader_and_those_beyond_the_bound_are_counted(
    pipe: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The first ones stay, in their order; what is lost is warned of once."""
    monkeypatch.setattr(line_queue, "MOST_LINES", 10)
    store = Store()
    log = _log(store, pipe)
    for _ in range(50):
        store.record(compilation())
    lost = _dropped(store)["event_log_lines"]
    assert 0 < lost <= 40
    with _reading(pipe) as reader:
        lines = _read_lines(reader, 50 - lost)
        log.close()
    assert [line["sequence"] for line in lines[:10]] == list(range(1, 11))
    assert len(lines) == 50 - lost
    [record] = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "event_log_lines" in record.getMessage() and str(pipe) in record.getMessage()
    assert guard.internal_errors() == {}


def test_the_bytes_that_wait_are_bounded_too(pipe: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long lines fill memory as many lines do."""
    monkeypatch.setattr(line_queue, "MOST_BYTES", 100_000)
    monkeypatch.setattr(line_queue, "MOST_AT_ONCE", 1000)
    store = Store()
    log = _log(store, pipe)
    for _ in range(40):
        store.record(compilation(reason="x" * 10_000))
    assert _dropped(store)["event_log_lines"] >= 25
    log._lines._given_up = True


@pytest.mark.usefixtures("impatient")
def test_what_nobody_has_read_at_the_end_is_counted(pipe: pathlib.Path) -> None:
    """No thread goes on waiting for a reader."""
    store = Store()
    log = _log(store, pipe)
    for _ in range(3):
        store.record(compilation())
    log.close()
    assert _dropped(store) == {"event_log_lines": 3}
    assert log._lines._writing.acquire(timeout=HANGS)


def test_a_reader_that_comes_back_begins_with_a_whole_line(pipe: pathlib.Path) -> None:
    """The one before it left in the middle of a line."""
    store = Store()
    log = _log(store, pipe)
    with _reading(pipe) as reader:
        store.record(compilation(reason="x" * 200_000))  # more than a pipe holds
        while not os.read(reader, 100):
            time.sleep(0.01)
    while not _dropped(store):
        time.sleep(0.01)
    store.record(compilation())
    with _reading(pipe) as reader:
        assert [line["sequence"] for line in _read_lines(reader, 1)] == [2]
        log.close()
    assert _dropped(store) == {"event_log_lines": 1}


class _Disk:
    """Calls of the system that do not come back until they are let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers = threading.Event()
        self.asked = threading.Event()
        self._monkeypatch = monkeypatch

    def hang(self, name: str, below: pathlib.Path | None = None) -> None:
        call: Callable[..., Any] = getattr(os, name)

        def hanging(*arguments: Any, **more: Any) -> Any:
            if below is None or str(arguments[0]).startswith(str(below)):
                self.asked.set()
                self.answers.wait(HANGS)
            return call(*arguments, **more)

        self._monkeypatch.setattr(os, name, hanging)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Disk]:
    made = _Disk(monkeypatch)
    yield made
    made.answers.set()


@pytest.mark.usefixtures("impatient")
def test_a_disk_that_hangs_in_the_midst_costs_nobody_anything(tmp_path: pathlib.Path, disk: _Disk) -> None:
    """Events are taken in, the end comes, and lines that were not written are counted."""
    store = Store()
    log = _log(store, tmp_path / "log")
    store.record(compilation())
    assert log.flush()
    disk.hang("stat", tmp_path)
    store.record(compilation())
    assert disk.asked.wait(HANGS)
    for _ in range(4):
        store.record(compilation())
    log.close()
    assert _dropped(store) == {"event_log_lines": 5}


@pytest.mark.usefixtures("impatient")
def test_a_disk_that_hangs_from_the_start_is_waited_for_later(
    tmp_path: pathlib.Path, disk: _Disk, caplog: pytest.LogCaptureFixture
) -> None:
    """`install` goes on with a warning; when the disk answers, the lines are written."""
    store = Store()
    disk.hang("open", tmp_path)
    log = _log(store, tmp_path / "log")
    store.record(compilation())
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    disk.answers.set()
    while not log.flush():
        pass
    log.close()
    assert (tmp_path / "log").read_text(encoding="utf-8").count("\n") == 1
    assert _dropped(store) == {}


def test_a_child_that_is_forked_while_the_disk_hangs_writes_its_own_lines(tmp_path: pathlib.Path, disk: _Disk) -> None:
    """The parent's lines are not the child's to write, nor is its thread the child's to wait for."""
    store = Store()
    log = _log(store, tmp_path / "log")
    store.record(compilation("before"))
    assert log.flush()
    disk.hang("stat", tmp_path)
    store.record(compilation("parents"))
    assert disk.asked.wait(HANGS)
    if (child := _fork()) == 0:
        disk.answers = threading.Event()
        disk.answers.set()
        log.after_fork()
        store.record(compilation("childs"))
        os._exit(0 if log.flush() else 1)
    assert os.waitpid(child, 0)[1] == 0
    disk.answers.set()
    log.close()
    lines = [json.loads(line) for line in (tmp_path / "log").read_text(encoding="utf-8").splitlines()]
    assert [line["function"] for line in lines] == ["before", "childs", "parents"]


def _fork() -> int:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX and newer versions of Python warn of any fork
        return os.fork()


def test_where_no_thread_can_start_lines_are_written_at_once(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at the interpreter's end, or at the most threads that a user may have."""

    def refuse(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    store = Store()
    log = _log(store, tmp_path / "log")
    monkeypatch.setattr(line_queue.threads, "start_new_thread", refuse)
    store.record(compilation())
    assert (tmp_path / "log").read_text(encoding="utf-8").count("\n") == 1
    store.record(compilation())
    log.close()
    assert (tmp_path / "log").read_text(encoding="utf-8").count("\n") == 2
    assert _dropped(store) == {}


@pytest.mark.parametrize("make", [EventLog, MetricsFile], ids=["event_log", "metrics_file"])
def test_a_socket_is_refused(make: Callable[..., object], tmp_path: pathlib.Path) -> None:
    """At once: nothing can be written to its path."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        with pytest.raises(SettingError, match="cannot be written"):
            make(Store(), Settings(), str(tmp_path / "s"))


@pytest.mark.parametrize("make", [EventLog, MetricsFile], ids=["event_log", "metrics_file"])
def test_a_terminal_that_is_stopped_holds_nobody(make: Callable[..., Any], request: pytest.FixtureRequest) -> None:
    """As by Control-S."""
    request.getfixturevalue("impatient")
    main, terminal = os.openpty()
    try:
        os.set_blocking(terminal, False)
        with contextlib.suppress(BlockingIOError):
            while os.write(terminal, b"x" * 4096):
                pass
        store = full_store()
        exporter = make(store, Settings(), os.ttyname(terminal))
        store.record(compilation())
        exporter.close()
    finally:
        os.close(terminal)
        os.close(main)
    assert sum(_dropped(store).values()) >= 1


def test_a_large_batch_is_written_in_parts_of_whole_lines(tmp_path: pathlib.Path) -> None:
    """Lines wait for the disk and are written many at once, none twice."""
    file = appended.AppendedFile(str(tmp_path / "log"), 2**30)
    file.open()
    lines = appended.deque(b"%d %s\n" % (number, b"x" * 1000) for number in range(1000))
    writes = 0
    while lines:
        assert file.append(lines) == appended.Written()
        writes += 1
    file.close()
    assert 1 < writes < 10
    read = (tmp_path / "log").read_bytes().splitlines()
    assert [int(line.split()[0]) for line in read] == list(range(1000))


# ------------------------------------------------------------------------------------------------- metrics file


@pytest.mark.usefixtures("impatient")
def test_a_metrics_file_on_a_disk_that_hangs_is_counted(tmp_path: pathlib.Path, disk: _Disk) -> None:
    """The first write is waited for, those after it are not; when the disk answers it is written again."""
    store = full_store()
    written = MetricsFile(store, Settings(), str(tmp_path / "prom"))
    disk.hang("replace")
    for _ in range(3):
        written.write()
    assert _dropped(store)["metrics_file_write"] == 3
    disk.answers.set()
    while written._disk.hangs:
        time.sleep(0.01)
    written.close()
    assert (tmp_path / "prom").read_text(encoding="utf-8").startswith("# HELP")
    assert _dropped(store)["metrics_file_write"] == 3


@pytest.mark.usefixtures("impatient")
def test_a_pipe_that_nobody_reads_costs_the_metrics_and_nothing_else(pipe: pathlib.Path) -> None:
    store = full_store()
    MetricsFile(store, Settings(), str(pipe)).close()
    assert _dropped(store)["metrics_file_write"] == 1
    assert pipe.is_fifo()


# ------------------------------------------------------------------------------------------------- other files


def test_a_report_on_a_disk_that_hangs_is_given_up(
    tmp_path: pathlib.Path, disk: _Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whoever runs out of memory, or ends: in time, and at once the second time."""
    monkeypatch.setattr(report_files, "DISK_SECONDS", 0.2)
    files = report_files.ReportFiles(Store(Settings(flight_recorder=str(tmp_path))), "out-of-memory")
    disk.hang("listdir", tmp_path)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            files.write(0.0, 0, "text")
    disk.answers.set()
    while files._disk.hangs:
        time.sleep(0.01)
    assert files.write(0.0, 0, "text") is not None


def test_the_file_of_a_run_on_a_disk_that_hangs_is_given_up(
    tmp_path: pathlib.Path, disk: _Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slow tick goes on."""
    monkeypatch.setattr(run_source, "DISK_SECONDS", 0.2)
    monkeypatch.setattr(run_source.internals, "backends_awake", lambda: True)
    store = Store(Settings(flight_recorder=str(tmp_path), run_id="r"))
    disk.hang("stat", tmp_path)
    run_source.Run(store).sample()
    assert disk.asked.is_set()
    assert "disk has not answered" in store.snapshot().observer.notes[-1]


def test_the_memory_of_cache_keys_on_a_disk_that_hangs_is_given_up(
    tmp_path: pathlib.Path, disk: _Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compile goes on, without a reason for the miss."""
    monkeypatch.setattr(cache_lookups, "DISK_SECONDS", 0.2)
    monkeypatch.setattr(cache_lookups.Sidecar, "refresh", lambda self: disk.answers.wait(HANGS))
    monkeypatch.setattr(cache_lookups.CacheLookups, "_mine", lambda *_: None)
    store = Store(Settings(event_log=str(tmp_path / "log")))
    looked_up = internals.Lookup(request=SimpleNamespace(key="k"), result="miss")  # type: ignore[arg-type]
    fact = cache_lookups.CacheLookups(store).fact(looked_up, "f", None, False, 1.0)
    assert (fact.result, fact.reason) == ("miss", None)
    assert _dropped(store) == {"cache_keys": 1}


def test_a_forked_child_does_not_wait_for_the_parents_disk() -> None:
    """The thread that hangs is the parent's."""
    patience, answers = Patience(0.1), threading.Event()
    with pytest.raises(TimeoutError):
        patience.do(lambda: answers.wait(HANGS))
    with pytest.raises(TimeoutError):
        patience.do(int)
    if (child := _fork()) == 0:
        os._exit(patience.do(int))
    assert os.waitpid(child, 0)[1] == 0
    answers.set()


# --------------------------------------------------------------------------------------------- several processes

TWO = """
import sys
from jaxobs.base import config
from jaxobs.exporters.metrics_file import MetricsFile
from jaxobs.state.store import Store
settings = config.resolve({"metrics_file": sys.argv[1]})
written = MetricsFile(Store(), settings, settings.metrics_file)
written.write()
print("ready", flush=True)
sys.stdin.read()
written.close()
"""


def _second(path: pathlib.Path) -> subprocess.Popen[str]:
    program = subprocess.Popen(
        [sys.executable, "-c", TWO, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    assert program.stdout is not None and program.stdout.readline() == "ready\n"
    return program


def test_two_processes_do_not_overwrite_each_others_metrics(tmp_path: pathlib.Path) -> None:
    """The second one writes beside, where no collector of `*.prom` looks, and says whose the file is."""
    path = tmp_path / "m.prom"
    first, second = _second(path), _second(path)
    _, told = second.communicate(timeout=HANGS)
    assert sorted(each.name for each in tmp_path.iterdir()) == [".m.prom.lock", "m.prom", f"m.prom.{second.pid}"]
    assert f"process {first.pid} on " in told and f"m.prom.{second.pid}" in told and "{process_index}" in told
    assert first.communicate(timeout=HANGS)[1] == ""
    assert sorted(each.name for each in tmp_path.iterdir()) == ["m.prom", f"m.prom.{second.pid}"]


@pytest.mark.parametrize("end", [signal.SIGKILL, None])
def test_the_next_run_writes_the_same_file(tmp_path: pathlib.Path, end: signal.Signals | None) -> None:
    """A process that has ended, even by SIGKILL, has no claim."""
    path = tmp_path / "m.prom"
    for _ in range(2):
        program = _second(path)
        if end is not None:
            program.send_signal(end)
        assert program.communicate(timeout=HANGS)[1] == ""
    assert [each.name for each in tmp_path.iterdir() if not each.name.startswith(".")] == ["m.prom"]


def test_names_for_each_process(tmp_path: pathlib.Path) -> None:
    """`{pid}`, and the index once there is something to write."""
    path = tmp_path / "m-{process_index}-{pid}.prom"
    programs = [_second(path) for _ in range(2)]
    assert [program.communicate(timeout=HANGS)[1] for program in programs] == ["", ""]
    assert {each.name for each in tmp_path.iterdir()} == {f"m-0-{program.pid}.prom" for program in programs}
