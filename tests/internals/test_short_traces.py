"""Traces of ours beside those of the program: theirs never fail by ours."""

import os
import pathlib
import sys
import threading
import time
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import pytest

from jaxobs.internals import short_traces
from jaxobs.internals.short_traces import MARK, ShortTrace
from jaxobs.internals.xplane import space

WAIT = 120.0


@pytest.fixture(autouse=True)
def _ended() -> Iterator[None]:
    jnp.ones(3).block_until_ready()
    yield
    if ShortTrace.latest is not None:
        ShortTrace.latest.end()


def begun(*, programs: bool = True) -> ShortTrace:
    trace = short_traces.begin(programs=programs)
    assert trace is not None
    return trace


def names(data: bytes | None) -> set[str]:
    assert data is not None
    return {
        event.kind.name for plane in space.read(data).planes for line in plane.lines for event in line.events
    }  # fmt: skip


def test_it_records_what_runs_and_leaves_no_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    product = jax.jit(lambda x: x @ x)
    product(jnp.ones((64, 64))).block_until_ready()
    trace = begun()
    product(jnp.ones((64, 64))).block_until_ready()
    data = trace.end()
    assert MARK in names(data)
    assert data is not None
    planes = space.read(data).planes
    assert any("hlo_op" in event.stats for plane in planes for line in plane.lines for event in line.events)
    assert list(tmp_path.iterdir()) == []


def test_without_programs_it_is_smaller() -> None:
    product = jax.jit(lambda x: jnp.tanh(x @ x))
    sizes = {}
    for programs in (True, False):
        trace = begun(programs=programs)
        product(jnp.ones((64, 64))).block_until_ready()
        data = trace.end()
        assert data is not None
        sizes[programs] = any(each.stats for plane in space.read(data).planes if plane.name == "/host:metadata"
                              for each in plane.kinds)  # fmt: skip
    assert sizes == {True: True, False: False}


def test_none_begins_while_the_programs_own_runs(tmp_path: pathlib.Path) -> None:
    """Theirs would fail at its end."""
    jax.profiler.start_trace(str(tmp_path))
    try:
        assert short_traces.begin(programs=True) is None
    finally:
        jax.profiler.stop_trace()
    assert list(tmp_path.rglob("*.xplane.pb"))
    assert begun().end() is not None


def test_the_programs_own_waits_for_the_end_of_ours(tmp_path: pathlib.Path) -> None:
    """A wait neither raises nor loses anything, and a poll sees it."""
    trace, failed = begun(), []

    def program() -> None:
        try:
            with jax.profiler.trace(str(tmp_path)), jax.profiler.TraceAnnotation("theirs"):
                jnp.ones(4).block_until_ready()
        except Exception as error:
            failed.append(error)

    assert not trace.has_waiters(sys._current_frames())
    thread = threading.Thread(target=program)
    thread.start()
    deadline = time.monotonic() + WAIT
    while not trace.has_waiters(sys._current_frames()) and time.monotonic() < deadline:
        time.sleep(0.001)
    assert trace.has_waiters(sys._current_frames())
    assert trace.end() is not None
    thread.join(WAIT)
    assert failed == []
    [file] = tmp_path.rglob("*.xplane.pb")
    assert "theirs" in names(file.read_bytes())


def test_annotations_of_the_program_wait_for_nothing() -> None:
    """Code of annotations lies where that of traces does, and runs in each step."""
    trace, held, began = begun(), threading.Lock(), threading.Event()
    held.acquire()

    def program() -> None:
        began.set()
        # As a compiled function, this one has no frame of its own.
        jax.profiler.annotate_function(held.acquire, name="step")(True, WAIT)

    thread = threading.Thread(target=program)
    thread.start()
    began.wait(WAIT)
    frame, deadline = None, time.monotonic() + WAIT
    while (frame is None or "profiler.py" not in frame.f_code.co_filename) and time.monotonic() < deadline:
        frame = sys._current_frames().get(thread.ident or 0)
    assert frame is not None and "profiler.py" in frame.f_code.co_filename
    assert not trace.has_waiters(sys._current_frames())
    held.release()
    thread.join(WAIT)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_a_fork_ends_it_and_the_child_has_no_lock_that_nobody_holds() -> None:
    """The child would wait for ever where it begins a trace of its own."""
    trace = begun()
    if (child := os.fork()) == 0:
        free = short_traces._profiler()._profile_state.lock.acquire(timeout=5)
        os._exit(0 if free and ShortTrace.latest is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert trace.end() is None
    assert begun().end() is not None


def test_a_profiler_server_is_an_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Captures of the server begin in C++, where nothing waits."""
    assert short_traces.obstacle() is None
    monkeypatch.setattr(short_traces._profiler(), "_profiler_server", object())
    assert "start_server" in (short_traces.obstacle() or "")


def test_a_session_that_cannot_begin_gives_the_lock_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the program's own traces would wait for ever."""

    def fails(programs: bool) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(short_traces, "_begin", fails)
    with pytest.raises(RuntimeError):
        short_traces.begin(programs=True)
    monkeypatch.undo()
    assert begun().end() is not None
