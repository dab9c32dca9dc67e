"""Installing, serving, sampling and ending: once or twice, in any order, and whatever goes wrong."""

from __future__ import annotations

import itertools
import math
import os
import pathlib
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import types
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from helpers.made_by_hand import compilation
from helpers.run_programs import environment, events, programs, run
from helpers.waiting import until
from jax._src import monitoring

import jaxobs
from jaxobs.base import config, discovery, guard, threads
from jaxobs.base.config import Settings
from jaxobs.base.errors import PortTakenError, SettingError
from jaxobs.facts.compilations import Compilation
from jaxobs.session import lifecycle, sampler
from jaxobs.session.sampler import BUDGET, MOST_BUDGET, Sampler, budget
from jaxobs.state import store
from jaxobs.state.store import Store
from tools.ports import free_port

pytestmark = pytest.mark.usefixtures("fresh")

OURS = 8
"""Listeners of compilations (three) and of checkpoints (three)."""


def _listeners() -> list[Any]:
    lists = ("_event_listeners", "_event_duration_secs_listeners", "_scalar_listeners")
    return [each for name in lists for each in getattr(monitoring, name)]


def _threads() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("jaxobs"))


def _wait_for_threads_to_end() -> None:
    until(lambda: not _threads(), _threads)


def _in_threads(count: int, work: Callable[[], object]) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _healthy(handle: Any) -> bool:
    return urllib.request.urlopen(f"{handle.url}healthz").read() == b"ok\n"


def _compile() -> None:
    jax.jit(lambda x: x * 2 + 1)(jnp.float32(3))


def _sample() -> None:
    assert lifecycle._session is not None
    lifecycle._session.sample()


def _functions() -> dict[str, int]:
    return {each.name: each.compiled for each in jaxobs.snapshot().functions if each.name != "<eager>"}


# --------------------------------------------------------------------------------------- install, uninstall


def test_installing_twice_sees_everything_once() -> None:
    before = _listeners()
    for _ in range(3):
        jaxobs.install()
    assert len(_listeners()) == len(before) + OURS
    assert _threads().count("jaxobs-sampler") == 1
    _compile()
    assert list(_functions().values()) == [1]


def test_threads_that_install_at_once_make_one_session() -> None:
    """Libraries may each install."""
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        jaxobs.install()

    before = len(_listeners())
    _in_threads(8, work)
    assert len(_listeners()) == before + OURS
    assert _threads().count("jaxobs-sampler") == 1


def test_uninstalling_leaves_other_peoples_listeners_and_what_was_recorded() -> None:
    """Our listeners, threads and endpoints end; theirs stay, in their order."""
    mine: list[str] = []

    def listener(event: str, **_: Any) -> None:
        mine.append(event)

    monitoring.register_event_listener(listener)
    try:
        before = _listeners()
        handle = jaxobs.start(port=0)
        _compile()
        jaxobs.uninstall()
        assert _listeners() == before
        _wait_for_threads_to_end()
        assert handle is not None and handle.closed
        assert list(_functions().values()) == [1]
        assert not jaxobs.snapshot().observer.installed
        _compile()
        assert list(_functions().values()) == [1]
        jaxobs.uninstall()
    finally:
        monitoring._event_listeners.remove(listener)


def test_installing_again_after_uninstalling() -> None:
    """As often as wanted; nothing is left behind."""
    before = _listeners()
    for number in range(3):
        jaxobs.install()
        _compile()
        assert sum(_functions().values()) == number + 1
        jaxobs.uninstall()
    assert _listeners() == before
    _wait_for_threads_to_end()


def test_installing_with_other_settings_puts_them_in_force(tmp_path: pathlib.Path) -> None:
    jaxobs.install(max_events=50, event_log=tmp_path / "one")
    store.current().record(compilation("a"))
    jaxobs.install(max_events=7)
    store.current().record(compilation("b"))
    assert store.current().settings.max_events == 7
    jaxobs.install(event_log=tmp_path / "two")
    store.current().record(compilation("c"))
    jaxobs.install()
    jaxobs.install(event_log="")
    store.current().record(compilation("d"))
    jaxobs.uninstall()
    assert [e["function"] for e in events(tmp_path / "one", "compilation")] == ["a", "b"]
    assert [e["function"] for e in events(tmp_path / "two", "compilation")] == ["c"]


@pytest.mark.parametrize(
    "wrong", [{"event_lag": "x"}, {"port": "web"}, {"metrics_file": "/proc/nowhere/x"}, {"instrument": ["no colon"]}]
)
def test_wrong_settings_change_nothing(wrong: dict[str, Any], tmp_path: pathlib.Path) -> None:
    """Refused at once; what was in force before is in force still, and the first install can be tried again."""
    with pytest.raises(SettingError):
        jaxobs.install(event_log=tmp_path / "log", **wrong)
    store.current().record(compilation("lost"))
    _wait_for_threads_to_end()
    jaxobs.install(event_log=tmp_path / "log")
    store.current().record(compilation("a"))
    with pytest.raises(SettingError):
        jaxobs.install(event_log=tmp_path / "other", **wrong)
    store.current().record(compilation("b"))
    jaxobs.uninstall()
    assert [e["function"] for e in events(tmp_path / "log", "compilation")] == ["a", "b"]
    other = tmp_path / "other"
    assert not other.exists() or events(other) == []


def test_a_misspelt_variable_is_told_of(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """On the page and in the log."""
    monkeypatch.setenv("JAXOBS_EVENTLOG", "x")
    jaxobs.install()
    [note] = jaxobs.snapshot().observer.notes
    assert "JAXOBS_EVENT_LOG" in note
    assert note in caplog.text


def test_snapshot_before_and_after_installing() -> None:
    """Never fails, and says whether anybody is looking."""
    assert not jaxobs.snapshot().observer.installed
    jaxobs.install()
    _compile()
    snapshot = jaxobs.snapshot()
    assert snapshot.observer.installed
    assert snapshot.process.pid == os.getpid()
    assert snapshot.process.hostname == socket.gethostname()
    assert snapshot.process.platform == "cpu"
    assert (snapshot.process.process_index, snapshot.process.process_count) == (0, 1)
    assert snapshot.process.versions["jax"] == jax.__version__
    assert all(snapshot.observer.capabilities.values())
    assert snapshot.observer.internal_errors == {}
    [function] = [each for each in snapshot.functions if each.name != "<eager>"]
    assert function.compilations == {"first_call": {"disabled": 1}}
    assert function.phase_counts == {"trace": 1, "lower": 1, "compile": 1}
    assert function.calls is None
    assert snapshot.last_sequence == store.current().events()[1]
    assert abs(snapshot.time - time.time()) < 5


# ------------------------------------------------------------------------------------------- start and serve


def test_starting_twice_gives_the_same_endpoint_unless_it_was_closed() -> None:
    first = jaxobs.start(port=0)
    assert first is not None
    assert jaxobs.start() is jaxobs.start(port=0) is jaxobs.start(port=first.port) is first
    free = free_port()
    second = jaxobs.start(port=free)
    assert second is not first and second is not None and second.port == free
    assert _healthy(first) and _healthy(second)
    for handle in (first, second):
        handle.close()
    third = jaxobs.start(port=0)
    assert third is not None and not third.closed and _healthy(third)


def test_a_taken_port_is_no_obstacle(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    """`start` warns once, serves the next free port and prints it once; `serve` says that the port is taken."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortTakenError, match=f"Port {port} on 127.0.0.1 is taken"):
            jaxobs.serve(port=port)
        handle = jaxobs.start(port=port)
        assert handle is not None and handle.port != port
        assert _healthy(handle)
        assert jaxobs.start() is handle
    assert capsys.readouterr() == ("", f"jaxobs: {handle.url}\n")
    (warning,) = [each.message for each in caplog.records if "is taken" in each.message]
    assert f"Port {port} is taken" in warning and handle.url in warning and "--port" not in warning
    assert warning in jaxobs.snapshot().observer.notes


@pytest.mark.parametrize(
    ("variable", "value", "complaint"),
    [
        ("PORT", "web", "`JAXOBS_PORT` is 'web', which is not a valid integer"),
        ("ADDR", "no-such-host.invalid", "Cannot listen on 'no-such-host.invalid'"),
        ("SAMPLE_INTERVAL", "-1", "`JAXOBS_SAMPLE_INTERVAL` is '-1', but must be"),
        ("INSTRUMENT", "no colon", "`instrument` is 'no colon', which is not of the form"),
        ("EVENT_LOG", "/proc/nowhere/x", "`event_log` is '/proc/nowhere/x', which cannot be written"),
        ("METRICS_FILE", "/proc/nowhere/x", "`metrics_file` is '/proc/nowhere/x', which cannot be written"),
        ("CAPTURE_SIGNAL", "maybe", "`JAXOBS_CAPTURE_SIGNAL` is 'maybe'"),
    ],
)
def test_a_variable_that_does_not_fit_ends_no_program(
    variable: str, value: str, complaint: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning, once, and the program is observed as if the variable were not set; by keyword it is an error."""
    monkeypatch.setenv(f"JAXOBS_{variable}", value)
    free: dict[str, Any] = {} if variable in ("PORT", "ADDR") else {"port": 0}
    handle = jaxobs.start(**free)
    assert handle is not None and handle.addr == "127.0.0.1"
    jaxobs.install(max_events=10)
    assert jaxobs.snapshot().observer.installed
    assert len([each for each in caplog.records if complaint in each.message]) == 1
    jaxobs.uninstall()
    monkeypatch.delenv(f"JAXOBS_{variable}")
    with pytest.raises(SettingError):
        jaxobs.start(**{"port": 0, variable.lower(): [value] if variable == "INSTRUMENT" else value})


def test_port_and_address_come_from_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the variable, or from what was installed."""
    free = free_port()
    monkeypatch.setenv("JAXOBS_PORT", str(free))
    handle = jaxobs.serve()
    assert handle is not None and handle.port == free
    handle.close()
    monkeypatch.delenv("JAXOBS_PORT")
    jaxobs.install(port=free)
    handle = jaxobs.serve()
    assert handle is not None and handle.port == free


CHECKED = programs(__file__)["checked"]
"""Programs that check themselves, what stands once in their error output, and variables for them."""


@pytest.mark.parametrize("name", CHECKED)
def test_a_process_of_its_own(name: str, tmp_path: pathlib.Path) -> None:
    case = CHECKED[name]
    ran = run(case["program"], tmp_path, **case.get("variables", {}))
    assert (ran.returncode, ran.stdout) == (0, "2.0\n" if "print" in case["program"] else ""), ran.stderr
    assert ran.stderr.count(case["error"]) == 1 if "error" in case else ran.stderr == ""


# ------------------------------------------------------------------------------------------------------ exit

ENDINGS: list[tuple[str, str, int, dict[str, Any]]] = [
    ("", "", 0, {"reason": "normal", "detail": None, "code": None}),
    ("raise ValueError('no')", "ValueError: no", 1, {"reason": "exception", "detail": "ValueError", "code": 1}),
    ("os.kill(os.getpid(), 15); time.sleep(3600)", "", -15, {"reason": "signal", "detail": "SIGTERM"}),
    ("sys.exit(0)", "", 0, {"reason": "normal", "detail": None}),
    ("sys.exit(3)", "", 3, {"reason": "normal", "detail": None}),
    ("raise KeyboardInterrupt", "KeyboardInterrupt", -2,
     {"reason": "exception", "detail": "KeyboardInterrupt", "code": 130}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "end", "error", "code", "expected"),
    [(first, *each) for first, some in (("jaxobs", ENDINGS), ("jax", ENDINGS[:3])) for each in some],
    ids=lambda value: str(value)[:20],
)
def test_the_last_state_is_written_however_it_ends(
    first: str, end: str, error: str, code: int, expected: dict[str, Any], tmp_path: pathlib.Path
) -> None:
    """The exit event is the last line, the metrics file is complete; exit code and output are as without us."""
    start = f"import {first}, os, sys, time, jaxobs; jaxobs.install(); import jax"
    log, metrics = tmp_path / "log", tmp_path / "prom"
    variables = {"JAXOBS_EVENT_LOG": str(log), "JAXOBS_METRICS_FILE": str(metrics), "JAXOBS_SAMPLE_INTERVAL": "60"}
    ran = run(f"{start}\njax.jit(lambda x: x + 1)(1.0)\n{end}", **variables)
    assert (ran.returncode, ran.stdout) == (code, "")
    assert ran.stderr.strip().endswith(error) and ("jaxobs" not in ran.stderr)
    last = events(log)[-1]
    assert last["event"] == "exit"
    assert expected.items() <= last.items()
    assert len(events(log, "exit")) == 1
    assert "# HELP jax_compilations_total" in metrics.read_text(encoding="utf-8")
    assert 'jax_live_arrays{device="cpu:0"}' in metrics.read_text(encoding="utf-8")


def test_an_error_at_a_prompt_is_no_reason_to_exit(tmp_path: pathlib.Path) -> None:
    """Hours before the end, perhaps: whoever types the last line ends it normally."""
    command = [sys.executable, "-i", "-c", "import jax, jaxobs; jaxobs.install()"]
    variables = environment(JAXOBS_EVENT_LOG=str(tmp_path / "log"))
    subprocess.run(command, env=variables, input="1 / 0\n", capture_output=True, text=True, timeout=120, check=True)
    assert events(tmp_path / "log")[-1]["reason"] == "normal"


def test_a_killed_process_leaves_whole_lines(tmp_path: pathlib.Path) -> None:
    """SIGKILL gives nobody a last word: what was written is whole, and the metrics file is the last of the interval."""
    program = """
        import jaxobs, jax, os, time
        jaxobs.install(metrics_interval=0.1)
        jax.jit(lambda x: x + 1)(1.0)
        while not os.path.exists(os.environ["JAXOBS_METRICS_FILE"]): time.sleep(0.02)
        while not jaxobs.snapshot().devices: time.sleep(0.02)
        while '"compilation"' not in open(os.environ["JAXOBS_EVENT_LOG"]).read(): time.sleep(0.02)
        os.kill(os.getpid(), 9)
    """
    log, metrics = tmp_path / "log", tmp_path / "prom"
    ran = run(program, JAXOBS_EVENT_LOG=str(log), JAXOBS_METRICS_FILE=str(metrics))
    assert ran.returncode == -signal.SIGKILL
    assert {event["event"] for event in events(log)} == {"manifest", "compilation", "memory"}
    assert metrics.read_text(encoding="utf-8").endswith("\n")


def test_nothing_of_ours_keeps_the_process_alive(tmp_path: pathlib.Path) -> None:
    """Sampler, endpoint and signal watcher are running, a request is open, and a device hangs in its statistics."""
    program = """
        import jaxobs, jax, socket, threading, time
        from jaxobs.testing import FakeClient, FakeDevice, backends
        hanging = []
        class Hanging(FakeDevice):
            def memory_stats(self):
                hanging.append(1)
                threading.Event().wait()
        handle = jaxobs.start(port=0, sample_interval=0.05)
        jax.jit(lambda x: x + 1)(1.0)
        client = socket.create_connection(("127.0.0.1", handle.port)); client.send(b"GET /metr")
        context = backends(FakeClient([Hanging(0)])); context.__enter__()
        while not hanging: time.sleep(0.01)
    """
    ran = run(program, JAXOBS_EVENT_LOG=str(tmp_path / "log"))
    assert ran.returncode == 0 and ran.stderr.startswith("jaxobs: http://")
    assert events(tmp_path / "log")[-1]["event"] == "exit"


IN_FLIGHT = """
    import jax, jaxobs, jax.numpy as jnp, sys
    jaxobs.start(port=0, sample_interval=0.05, event_log=sys.argv[1], array_call_sites=True)
    def step(x):
        for _ in range(4):
            x = jnp.tanh(x @ x)
        return x, jnp.sum(x)
    step, kept = {jit}(step), [jnp.ones((700, 700))]
    for _ in {loop}:
        x, loss = step(kept[-1])
        kept.append(x)
        {watch}
"""
DECLARED = {"jit": "jaxobs.jit", "loop": "jaxobs.steps(range(50), 'train')", "watch": "jaxobs.watch(loss=loss)"}
FOUND = {"jit": "jax.jit", "loop": "range(50)", "watch": ""}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loop", "end"), [(FOUND, ""), (DECLARED, ""), (DECLARED, "raise SystemExit(3)"), (FOUND, "jaxobs.uninstall()")]
)
def test_nothing_of_ours_keeps_the_backend_alive(loop: dict[str, str], end: str, tmp_path: pathlib.Path) -> None:
    """JAX waits for the work in flight when the last reference to its backend goes, and else crashes now and then."""
    variables = {"TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": "cpu_client=1"}
    ran = run(textwrap.dedent(IN_FLIGHT.format(**loop)) + end, tmp_path / "log", **variables)
    assert {each["event"] for each in events(tmp_path / "log")} >= {"memory", "compilation"}
    assert ("CpuClient created." in ran.stderr, "CpuClient destroyed." in ran.stderr) == (True, True), ran.stderr


def test_no_warning_of_any_kind_under_the_strictest_interpreter(tmp_path: pathlib.Path) -> None:
    """Development mode with warnings as errors: no socket, file or thread is left to the collector."""
    program = """
        import jaxobs
        import warnings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import jax
        handle = jaxobs.start(port=0, metrics_interval=0.1)
        jax.jit(lambda x: x + 1)(1.0)
        jaxobs.uninstall()
        handle = jaxobs.start(port=0)
        jaxobs.serve(port=0).close()
    """
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", textwrap.dedent(program)]
    variables = environment(JAXOBS_EVENT_LOG=str(tmp_path / "log"), JAXOBS_METRICS_FILE=str(tmp_path / "prom"))
    ran = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stdout) == (0, "")
    assert all(line.startswith("jaxobs: http://") for line in ran.stderr.splitlines()), ran.stderr


# --------------------------------------------------------------------------------------------------- sampler


class _Source:
    """Something to sample."""

    def __init__(self, work: Callable[[], object] = lambda: None) -> None:
        self.work = work
        self.times: list[float] = []

    def sample(self) -> None:
        self.times.append(time.monotonic())
        self.work()


class _Exporter(_Source):
    def __init__(self, every: float) -> None:
        super().__init__()
        self.every = every


@pytest.fixture
def sampling() -> Iterator[Callable[..., Sampler]]:
    """Makes samplers, and ends them."""
    made: list[Sampler] = []

    def make(interval: float, *sources: _Source, exporters: tuple[_Exporter, ...] = ()) -> Sampler:
        made.append(Sampler(Store(), interval, sources, lambda: exporters))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def _burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_it_samples_at_its_interval_and_stops_at_once(sampling: Callable[..., Sampler]) -> None:
    """A stop does not wait for the interval, and no sample comes after it."""
    source = _Source()
    sampler = sampling(0.05, source)
    until(lambda: len(source.times) >= 3)
    sampler.stop()
    assert all(later - earlier > 0.04 for earlier, later in itertools.pairwise(source.times))
    count = len(source.times)
    time.sleep(0.15)
    assert len(source.times) == count
    hourly = sampling(3600, _Source())
    hourly.stop()
    until(lambda: not hourly._thread.is_alive())


def test_dear_samples_are_taken_rarely(sampling: Callable[..., Sampler]) -> None:
    """20 ms of computing at half a percent of a core: four seconds of rest."""
    source = _Source(lambda: _burn(0.03))
    sampler = sampling(Settings().sample_interval, source)
    sampler.sample()
    assert sampler.pause() >= 0.03 / BUDGET > Settings().sample_interval


def test_who_asks_for_more_samples_gets_them_within_bounds(sampling: Callable[..., Sampler]) -> None:
    """At an interval of 50 ms, 20 ms of computing are worth 0.4 s of rest."""
    source = _Source(lambda: _burn(0.02))
    sampler = sampling(0.05, source)
    sampler.sample()
    assert 0.02 / MOST_BUDGET <= sampler.pause() < 0.02 / BUDGET
    time.sleep(0.4)
    assert all(later - earlier >= 0.05 for earlier, later in itertools.pairwise(source.times[1:]))
    assert budget(Settings().sample_interval) == budget(60.0) == BUDGET


def test_waiting_does_not_count_as_computing(sampling: Callable[..., Sampler]) -> None:
    """A device that answers slowly costs no core."""
    sampler = sampling(0.05, _Source(lambda: time.sleep(0.1)))
    sampler.sample()
    assert sampler.pause() < 0.1 / MOST_BUDGET / 2


def test_exporters_are_called_at_their_own_interval(sampling: Callable[..., Sampler]) -> None:
    """Not at that of the samples: a metrics file may be wanted more often, or never before the end."""
    often, never, source = _Exporter(0.05), _Exporter(math.inf), _Source()
    started = time.monotonic()
    sampling(60.0, source, exporters=(often, never))
    until(lambda: len(often.times) >= 4)
    assert all(each >= started + 0.05 * number for number, each in enumerate(often.times, 1))
    assert never.times == []
    assert source.times == []


def test_a_scrape_samples_first_where_that_is_cheap(sampling: Callable[..., Sampler]) -> None:
    """Once a second at most, however many scrapes come at once."""
    source = _Source()
    sampler = sampling(60.0, source)
    _in_threads(20, sampler.if_cheap)
    assert len(source.times) == 1


def test_a_scrape_does_not_sample_where_that_is_dear(sampling: Callable[..., Sampler]) -> None:
    source = _Source(lambda: _burn(0.01))
    sampler_ = sampling(60.0, source)
    sampler_.sample()
    sampler_._sampled = -math.inf
    sampler_.if_cheap()
    assert len(source.times) == 1


def test_a_sample_that_hangs_holds_up_no_scrape_and_no_end(
    sampling: Callable[..., Sampler], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver may never answer again; only the sampler's own thread waits for it."""
    monkeypatch.setattr(sampler, "_PATIENCE", 0.1)
    monkeypatch.setattr(threads, "PATIENCE", 0.1)
    hang = threading.Event()
    source = _Source(hang.wait)
    sampler_ = sampling(0.01, source)
    while not source.times:
        time.sleep(0.01)
    sampler_.if_cheap()
    sampler_.sample()
    sampler_.stop()
    assert not hang.is_set()
    hang.set()


def test_a_source_that_raises_does_not_keep_the_others_from_theirs(sampling: Callable[..., Sampler]) -> None:
    """Counted each time, by the name of its type; the thread goes on."""
    guard.raise_internal_errors(False)
    broken, well = _Source(lambda: 1 / 0), _Source()
    sampler = sampling(60.0, broken, well)
    sampler.sample()
    sampler.sample()
    assert (len(broken.times), len(well.times)) == (2, 2)
    assert guard.internal_errors() == {"sample _Source": 2}


def test_the_metrics_file_is_written_at_its_interval_whatever_that_of_the_samples(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "prom"
    jax.devices()
    jaxobs.install(metrics_file=path, metrics_interval=0.1, sample_interval=600)
    times = set()

    def written() -> bool:
        if path.exists():
            times.add(path.stat().st_mtime_ns)
        return len(times) >= 4

    until(written)
    assert 'jax_live_arrays{device="cpu:7"}' in path.read_text(encoding="utf-8")
    assert guard.internal_errors() == {}


def _wait_for_samples(count: int) -> None:
    until(lambda: min((len(each.history) for each in store.current().snapshot_devices()), default=0) >= count)


def test_a_shorter_interval_takes_effect_at_once() -> None:
    jax.devices()
    jaxobs.install(sample_interval=3600)
    _wait_for_samples(1)
    jaxobs.install(sample_interval=0.05)
    _wait_for_samples(4)
    assert _threads().count("jaxobs-sampler") == 1


# -------------------------------------------------------------------------------------------- what goes wrong


PARTS = {"source": ("source", "start", "sample", "stop"), "exporter": ("exporter", "close")}


@pytest.mark.parametrize(
    ("kind", "fails_at"),
    [
        *(("source", part) for part in ("source", "start", "sample", "stop")),
        ("exporter", "exporter"),
        ("exporter", "close"),
    ],
)
def test_a_broken_part_does_not_keep_the_others_from_theirs(
    kind: str, fails_at: str, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    """Wherever it breaks: compilations are seen and logged, the failure is counted, and the program hears nothing."""
    guard.raise_internal_errors(False)

    class Broken:
        every = math.inf

        def __getattr__(self, name: str) -> Callable[[], None]:
            return lambda: {}["gone"] if name == fails_at else None  # type: ignore[return-value]

    def make(*_: object) -> Broken:
        if fails_at == kind:
            raise ImportError("this JAX has moved it, or its library is broken")
        return Broken()

    package, modules = f"jaxobs.{kind}s", discovery.modules
    extra = types.ModuleType(f"{package}.a_test")
    setattr(extra, kind, make)

    def with_extra(form: type[Any], *failed: Any) -> list[Any]:
        fits = form.__module__ == package and not discovery.missing(extra, form)
        return [extra] * fits + modules(form, *failed)

    monkeypatch.setattr(discovery, "modules", with_extra)
    before = len(_listeners())
    jaxobs.install(event_log=tmp_path / "log")
    _compile()
    _sample()
    assert list(_functions().values()) == [1]
    jaxobs.uninstall()
    assert len(_listeners()) == before
    assert len(events(tmp_path / "log", "compilation")) == len(store.current().events(kind="compilation")[0])
    assert list(guard.internal_errors().values()) == [1]


def test_listeners_that_somebody_cleared_are_put_back_and_it_is_noted() -> None:
    """`jax.monitoring.clear_event_listeners()` takes everyone's; the next tick or compile repairs it."""
    jaxobs.install()
    others = [each for each in _listeners() if not str(getattr(each, "__module__", "")).startswith("jaxobs")]
    jax.monitoring.clear_event_listeners()
    for each in others:
        monitoring.register_event_listener(each)
    _sample()
    [note] = jaxobs.snapshot().observer.notes
    assert "clear_event_listeners" in note
    _compile()
    assert list(_functions().values()) == [1]


def test_subscribers_of_the_user_see_each_compilation() -> None:
    """The store hands on what it takes in, in the thread that compiled."""
    seen: list[tuple[str, str]] = []
    jaxobs.install()

    def subscriber(event: object) -> None:
        if isinstance(event, Compilation) and not event.eager:
            seen.append((threading.current_thread().name, event.cause))

    unsubscribe = store.current().subscribe(subscriber)
    try:
        thread = threading.Thread(target=_compile, name="compiles")
        thread.start()
        thread.join()
    finally:
        unsubscribe()
    assert seen == [("compiles", "first_call")]


def test_the_environment_is_read_when_installing_not_when_importing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook sets the variable in a cell."""
    monkeypatch.setenv("JAXOBS_MAX_EVENTS", "11")
    jaxobs.install()
    assert store.current().settings.max_events == 11
    assert config.resolve({}).max_events == 11
