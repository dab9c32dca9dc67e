"""The last minutes: what real processes leave when something ends them, and what the text tells of facts."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from helpers.made_by_hand import compilation, full_store
from helpers.page_input_facts import SLOW, TRAIN, WALL, WATCHED
from helpers.run_programs import environment, events, programs

import jaxobs
from jaxobs.base import guard
from jaxobs.base.symptoms import symptom_url
from jaxobs.facts.compilations import CacheLookup
from jaxobs.facts.errors import Error, OomCause, OutOfMemory
from jaxobs.facts.events import Event
from jaxobs.facts.findings import Finding
from jaxobs.facts.memory import DeviceMemory, DeviceState
from jaxobs.facts.wall import RunState
from jaxobs.recorder import flight_recorder, last_minutes, oom_collection, report_files
from jaxobs.recorder.last_minutes import Ending, text
from jaxobs.state import store

GIB = 2**30
MINUTE = 60.0

PROGRAM = programs(__file__)["program"]
INSTALL = "import jaxobs; jaxobs.install(event_log=__import__('sys').argv.pop(1), flight_recorder=None)\n"


def line(folder: pathlib.Path, code: str, *, alone: bool = False) -> str:
    """`file:line` of a line of the program, known by a part of it."""
    (number,) = [number for number, each in enumerate(PROGRAM.splitlines(), 1) if code in each]
    return f"{folder / 'train.py'}:{number + alone}"


class Ended:
    """A program that has ended: its exit code, its event log and the one file, if any, that it left."""

    def __init__(self, folder: pathlib.Path, *arguments: str, alone: bool = False, send: int | None = None) -> None:
        script, self.log = folder / "train.py", folder / "log" / "events.jsonl"
        script.write_text((INSTALL if alone else "") + PROGRAM, encoding="utf-8")
        run = ["-m", "jaxobs", "run", "--port", "0", "--event-log", str(self.log), str(script)]
        command = [str(script), str(self.log)] if alone else run
        with subprocess.Popen(
            [sys.executable, *command, *arguments], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        ) as process:  # fmt: skip
            if send is not None:
                assert process.stdout is not None and process.stdout.readline() == "ready\n"
                time.sleep(0.5)
                process.send_signal(send)
            sent = time.monotonic()
            _, self.errors = process.communicate(timeout=120)
        self.seconds = time.monotonic() - sent
        self.code = process.returncode
        found = list(self.log.parent.glob("last-minutes-*.txt"))
        assert len(found) <= 1
        self.path = str(found[0]) if found else None
        self.text = found[0].read_text(encoding="utf-8") if found else ""
        (self.exit,) = events(self.log, "exit")
        assert self.exit["report"] == self.path
        assert "jaxobs failed" not in self.errors


def test_an_uncaught_error(tmp_path: pathlib.Path) -> None:
    """The file tells the chain, the lines, the compilations, and not one line of source; both events name it."""
    ended = Ended(tmp_path, "error")
    assert ended.code == 1 and ended.errors.count("Traceback") == 2 and "jaxobs" not in ended.errors
    (error,) = events(ended.log, "error")
    assert (error["error"], error["report"]) == ("ValueError", ended.path)
    raised = line(tmp_path, "raise ValueError")
    for start in (
        "The last minutes of train.py",
        "ended by:     ValueError: bad shape",
        f"raised from:  KeyError: secret at {line(tmp_path, 'secret')}",
        f"call site:    {raised}",
        f"  {raised} in trouble",
        "  cpu:0    live arrays ",
        "  jaxobs 0.1.0, python ",
    ):
        assert any(each.startswith(start) for each in ended.text.splitlines()), (start, ended.text)
    assert f" s) at {line(tmp_path, 'kept =')}\n" in ended.text and "compiled __main__.step (shape, 0." in ended.text
    assert "__main__.step: 3 programs (first_call 1, shape 2)" in ended.text
    assert "raise ValueError" not in ended.text and "WHERE IT WAS" not in ended.text


def test_how_the_program_stood() -> None:
    """Steps, time by category, who waited for whom, and what was not finite."""
    run = RunState(
        id="nightly", attempt=2, since=0.0, wall_seconds=200.0, seconds=WALL.seconds, down_seconds=0.0,
        redone_seconds=0.0, redone_steps=0, unsaved_seconds=12.0, unsaved_steps=40, goodput=0.5,
    )  # fmt: skip
    snapshot = replace(
        full_store().snapshot(), loops=(replace(TRAIN, ended=100.0),), wall=replace(WALL, run=run),
        inputs=(SLOW,), watched=WATCHED,
    )  # fmt: skip
    told = " ".join(text(Ending(time=103.0, what="SIGTERM"), snapshot, []).split())
    for part in (
        "STEPS train: 41,233 steps, 0.31 s each, p99 0.95 s, 205 items per second, 3 slow, the last one 3.0 s before",
        "WHERE THE TIME WENT - goodput 60%: step 60.0 s (60%), input_wait 25.0 s (25%), init 10.0 s (10%), compile",
        "- run nightly, attempt 2, goodput 50%, 40 steps (12.0 s) since the last checkpoint",
        "INPUT - train: 300 batches, 1.9 s waited. Of 8 ms the program waits 6.4 ms.",
        "WATCHED VALUES loss: not finite, first at call 202, 98 of 1,290 values",
        "finite: ratio",
    ):
        assert part in told
    for title in ("STEPS", "WHERE THE TIME WENT", "INPUT", "WATCHED VALUES"):
        bare = replace(snapshot, loops=(), wall=None, inputs=(), watched=())
        assert title not in text(Ending(time=103.0, what="SIGTERM"), bare, [])


def test_install_alone(tmp_path: pathlib.Path) -> None:
    """The interpreter keeps the exception that it has shown: it is told at exit, before JAX lets go of its arrays."""
    ended = Ended(tmp_path, "jax", alone=True)
    assert ended.code == 1 and "ended by:     TypeError: " in ended.text
    assert f"  {line(tmp_path, 'text', alone=True)} in trouble\n" in ended.text
    assert "  cpu:0    live arrays " in ended.text


@pytest.mark.parametrize(
    ("arguments", "code", "what"),
    [
        (["3"], 3, "SystemExit, exit code 3"),
        (["0"], 0, None),
        (["0", "early"], 2, None),
        (["interrupt"], -signal.SIGINT, "KeyboardInterrupt"),
    ],
)
def test_exit_codes(arguments: list[str], code: int, what: str | None, tmp_path: pathlib.Path) -> None:
    """A code of failure and Ctrl-C leave a file, a normal end and a usage error before anything compiled do not."""
    ended = Ended(tmp_path, *arguments)
    assert ended.code == code
    assert ended.text == "" if what is None else f"ended by:     {what}\n" in ended.text


def test_an_interrupt_while_it_compiles(tmp_path: pathlib.Path) -> None:
    """The exception has ended the phase before the process ends; the last minutes and the exit event name it."""
    ended = Ended(tmp_path, "interrupt-tracing")
    site = line(tmp_path, 'lambda x: trouble("interrupt")')
    told = " ".join(ended.text.split())
    assert f"unfinished: compilation of __main__.trouble.<locals>.<lambda> at {site}, after 0.0 s, in its" in told
    events = [json.loads(each) for each in ended.log.read_text().splitlines()]
    (compiling,) = events[-1]["compiling"]
    assert (events[-1]["event"], compiling["phase"], compiling["call_site"]) == ("exit", "trace", site)


def test_sigterm_while_it_compiles(tmp_path: pathlib.Path) -> None:
    """The main thread is in C++; what it compiles, since when and called from where is told, and it dies of SIGTERM."""
    ended = Ended(tmp_path, "compile", send=signal.SIGTERM)
    assert ended.code == -signal.SIGTERM
    assert "ended by:     SIGTERM" in ended.text
    told = " ".join(ended.text.split())
    assert f"in progress: __main__.deep at {line(tmp_path, 'jax.grad(deep)')}: compile since " in told
    assert f"WHERE IT WAS: MainThread\n  {line(tmp_path, 'last line')} in <module>\n" in ended.text
    assert f"  {line(tmp_path, 'lowered.compile')} in trouble\n  (" in ended.text


@pytest.mark.parametrize("handler", [False, True])
def test_sigterm(handler: bool, tmp_path: pathlib.Path) -> None:
    """A handler of the program's own is left alone, and it ends as it says."""
    ended = Ended(tmp_path, "sleep", *(["handler"] if handler else []), send=signal.SIGTERM)
    assert (ended.code, bool(ended.text)) == ((0, False) if handler else (-signal.SIGTERM, True))
    if not handler:
        assert f"{line(tmp_path, 'time.sleep')} in trouble" in ended.text and "compiled __main__.step" in ended.text
        assert "Dummy" not in ended.text and "jaxobs/" not in ended.text.replace(symptom_url("uncaught_error"), "")


# ------------------------------------------------------------------------------------------------ the recorder


@pytest.fixture
def recorder(fresh: None, tmp_path: pathlib.Path) -> Iterator[flight_recorder.FlightRecorder]:
    """Installed, with the files in a directory of the test's."""
    jaxobs.install(flight_recorder=str(tmp_path / "files"), sample_interval=3600)
    found = flight_recorder.of(store.current())
    found.after_fork()
    yield found
    assert guard.internal_errors() == {}


def test_once_and_only_where_it_is_wanted(
    recorder: flight_recorder.FlightRecorder, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process has one file; none without a directory, after `uninstall`, or in a directory that is full."""
    path = recorder.ended("SIGTERM")
    assert path is not None and recorder.ended(ValueError("later")) == path
    assert pathlib.Path(path).name.startswith("last-minutes-") and str(os.getpid()) in path
    monkeypatch.setattr(report_files, "MOST_FILES_IN_DIRECTORY", 1)
    recorder.after_fork()
    assert recorder.ended("SIGTERM") is None
    assert store.current().snapshot().observer.dropped["last_minutes_files"] == 1
    jaxobs.install(flight_recorder="off")
    recorder.after_fork()
    assert recorder.ended("SIGTERM") is None
    jaxobs.install(flight_recorder=str(tmp_path / "others"))
    jaxobs.uninstall()
    assert recorder.ended("SIGTERM") is None
    assert [each.name for each in tmp_path.rglob("*.txt")] == [os.path.basename(path)]


def test_an_error_that_is_survived_is_no_end(recorder: flight_recorder.FlightRecorder) -> None:
    """An error at a prompt is recorded without a file, also when the process ends later."""
    error = ValueError("typed wrong")
    recorder.uncaught(error)
    recorder.uncaught(error, ending=True)
    (event,) = store.current().events(kind="error")[0]
    assert isinstance(event, Error) and event.report is None and recorder.last_report is None


def test_a_device_that_hangs(
    recorder: flight_recorder.FlightRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """The end is held up for a bounded time, and no longer."""
    monkeypatch.setattr(oom_collection, "WAIT_SECONDS", 0.2)
    answers = threading.Event()
    monkeypatch.setattr(store.current(), "freshen", answers.wait)
    assert recorder.ended("SIGTERM") is None
    answers.set()
    for thread in threading.enumerate():
        if thread.name == "jaxobs-last-minutes":
            thread.join()  # what it writes yet is of this test


def test_an_end_on_two_threads_at_once(
    recorder: flight_recorder.FlightRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second thread gets the file that the first one writes."""
    begun = threading.Event()

    def slow() -> None:
        begun.set()
        time.sleep(0.3)

    monkeypatch.setattr(store.current(), "freshen", slow)
    first = threading.Thread(target=recorder.ended, args=("SIGTERM",))
    first.start()
    assert begun.wait(120)
    path = recorder.last_report
    first.join()
    assert path is not None and path == recorder.last_report


def test_values_may_be_kept_out(recorder: flight_recorder.FlightRecorder) -> None:
    """Without `static_values` the types of exceptions are told, and not what they say."""
    jaxobs.install(static_values=False)
    path = recorder.ended(ValueError("the secret"))
    assert path is not None
    written = pathlib.Path(path).read_text(encoding="utf-8")
    assert "ended by:     ValueError\n" in written and "secret" not in written


# -------------------------------------------------------------------------------------------------- the text


def told(*known: Event, ending: Ending | None = None, **parts: Any) -> str:
    """The text of facts made by hand."""
    filled = store.Store()
    for event in known:
        filled.record(event)
    for device, memory in parts.get("devices", ()):
        filled.set_device(device, memory)
    return text(ending or Ending(time=1000.0, what="SIGTERM"), filled.snapshot(), filled.events()[0])


def test_what_happened_the_latest_first() -> None:
    """Each kind in a line, eager operations in a row together, nothing older than five minutes, and not too many."""
    cause = OomCause(cause="live_arrays", summary="Live arrays hold 9 GiB.", advice="Shard.")
    written = told(
        compilation("old.f", time=600.0),
        compilation("add", time=800.0, eager=True),
        compilation("mul", time=801.0, eager=True),
        CacheLookup(time=802.0, function="train.step", result="hit", saved_seconds=12.0),
        CacheLookup(time=802.5, function="plain.miss", result="miss"),
        compilation("train.step", time=803.0, cache="hit", cause="shape", call_site="train.py:7"),
        Finding(time=804.0, id="x", finding="recompile_storm", function="f", summary="Again and\nagain.",
                advice="Pad."),
        OutOfMemory(time=805.0, function="g", stage="run", error="E", message="m", wanted_bytes=2 * GIB,
                    causes=(cause,), report="/logs/oom.txt"),
        Error(time=806.0, error="ValueError", call_site="train.py:9", message="bad"),
    )  # fmt: skip
    (block,) = [part for part in written.split("\n\n") if part.startswith("THE 5 MINUTES")]
    assert block.splitlines()[1:] == [
        "  00:13:26 error ValueError at train.py:9",
        "  00:13:25 out of memory g, 2.00 GiB wanted, see /logs/oom.txt: Live arrays hold 9 GiB.",
        "  00:13:24 finding recompile_storm f: Again and again.",
        "  00:13:23 loaded train.step (shape, 0.33 s) at train.py:7",
        "  00:13:22 cache hit train.step, saved 12.0 s",
        "  00:13:21 compiled 2 eager operations, 0.66 s",
    ]
    assert "ACTIVE FINDINGS\n  - Again and again. [recompile_storm]" in written.replace("Again and\n", "Again and ")
    many = told(*(compilation(f"f{number}", time=900.0 + number) for number in range(90)))
    assert many.count(" compiled f") == last_minutes.MOST_EVENTS and "(30 earlier ones)" in many


def test_memory_over_time_and_everything_at_once() -> None:
    """A few samples of each device spread over the time, the latest among them; a full store has all sections."""
    device = DeviceState(device="gpu:0", id=0, platform="gpu", device_kind="Fake", process_index=0)
    samples = [(device, DeviceMemory(time=400.0 + 10 * n, device="gpu:0", in_use_bytes=n * GIB)) for n in range(61)]
    (line,) = [each for each in told(devices=samples).splitlines() if " in use: " in each]
    assert line.startswith("  gpu:0    in use: 00:12:") and line.endswith("00:16:40 60.0 GiB")
    assert line.count(" GiB") == last_minutes.MOST_SAMPLES
    known = full_store()
    full = text(
        Ending(time=2.0, what="SIGTERM", threads={"MainThread": ("a.py:1 in f",)}, flags={"XLA_FLAGS": "--x"},
               host={"total": GIB}),
        known.snapshot(), known.events()[0],
    )  # fmt: skip
    for expected in (
        "in progress:  train.eval: compile since ", "WHERE IT WAS: MainThread\n  a.py:1 in f",
        "DEVICES BY THEIR DRIVER",
        "pid 8 1 B", "  total 1.00 GiB", "XLA_FLAGS=--x", "not available with this version of JAX: phase_starts",
        "dropped: max_functions (1)", "failed: place (1)",
    ):  # fmt: skip
        assert expected in full, (expected, full)
    guard.reset()
