"""Captures from Python: what is written, what is refused, what bounds them, and that the program goes on."""

import gzip
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import jaxobs
from jaxobs import actions
from jaxobs.actions.capturing import folder, runner
from jaxobs.actions.capturing.action_types import Parameter
from jaxobs.actions.capturing.runner import Capture
from jaxobs.base import config
from jaxobs.base.config import Settings
from jaxobs.base.errors import ParameterError
from jaxobs.facts.events import as_event
from jaxobs.state import store

pytestmark = pytest.mark.usefixtures("fresh")

Configure = Callable[..., None]


@pytest.fixture
def configure(fresh: None, tmp_path: Path) -> Iterator[Configure]:
    """Puts settings of captures in force for this process's store, and forgets the captures of other tests."""
    known = store.current()
    before = known.settings

    def configure(**settings: Any) -> None:
        values = {"capture_directory": str(tmp_path), "capture_interval": 0.0, **settings}
        known.configure(Settings(**values))

    runner._runners.pop(known, None)
    configure()
    yield configure
    runner.of(known).end(10)
    runner._runners.pop(known, None)
    known.configure(before)


@pytest.fixture
def step(configure: Configure) -> Callable[[], None]:
    @jaxobs.jit(name="train.step")
    def traced_train_step(x: jax.Array) -> jax.Array:
        return jnp.sin(x) @ x

    x = jnp.ones((8, 8))
    traced_train_step(x).block_until_ready()

    def step() -> None:
        traced_train_step(x).block_until_ready()
        time.sleep(0.05)

    return step


def events() -> list[dict[str, Any]]:
    found, _, _ = store.current().events(kind="action")
    return [as_event(each) for each in found]


def traced(capture: Capture, name: str) -> int:
    """Returns how often JAX's own reader finds an event of that name in a trace; JAX makes two for a call, one in the
    other."""
    assert capture.path is not None
    [file] = Path(capture.path).rglob("*.xplane.pb")
    data = jax.profiler.ProfileData.from_file(str(file))
    lines = [line for plane in data.planes for line in plane.lines]
    spans = sorted((each.start_ns, -each.end_ns) for line in lines for each in line.events if each.name == name)
    ends = [0.0]
    for start, end in spans:
        if start >= ends[-1]:
            ends.append(-end)
    return len(ends) - 1


@pytest.mark.usefixtures("configure")
def test_memory_is_a_profile_for_pprof_with_the_functions_that_made_the_arrays(tmp_path: Path) -> None:
    def where_the_arrays_are_made() -> list[jax.Array]:
        return [jnp.ones((16, 16)) + number for number in range(3)]

    kept = where_the_arrays_are_made()
    capture = jaxobs.capture("memory")
    assert capture.result == "done", capture
    assert capture.path == str(tmp_path / capture.name / "memory.pb.gz")
    with gzip.open(capture.path) as file:
        profile = file.read()
    assert b"where_the_arrays_are_made" in profile
    assert b"test_actions.py" in profile
    summary = (tmp_path / capture.name / "memory.txt").read_text()
    [line] = [each for each in summary.splitlines() if "float32[16,16]" in each]
    assert line.split() == ["3.00", "KiB", str(len(kept)), "x", "float32[16,16]", "cpu:0"]
    assert [f"cpu:{number} " in summary for number in range(8)] == [True] * 8
    assert (capture.detail or "").endswith("on 8 devices.")


@pytest.mark.usefixtures("configure")
def test_captures_are_private_and_named_with_time_process_and_pid(tmp_path: Path) -> None:
    jnp.ones(3)
    capture = jaxobs.capture("memory")
    assert [each.name for each in tmp_path.iterdir()] == [capture.name]
    action, moment, index, pid, number = capture.name.split("-")
    assert (action, index, pid, number) == ("memory", "0", str(os.getpid()), "1")
    assert abs(time.mktime(time.strptime(moment, "%Y%m%dT%H%M%SZ")) - time.timezone - time.time()) < 60
    assert stat.S_IMODE((tmp_path / capture.name).stat().st_mode) == 0o700
    files = list((tmp_path / capture.name).iterdir())
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}
    assert capture.bytes == sum(each.stat().st_size for each in files)


@pytest.mark.usefixtures("configure")
def test_what_was_captured_is_an_event(tmp_path: Path) -> None:
    jnp.ones(3)
    capture = jaxobs.capture("memory")
    [event] = events()
    expected = {name: getattr(capture, name) for name in ("path", "bytes", "seconds", "detail")}
    assert ({"name": "memory", "origin": "python", "result": "done"} | expected).items() <= event.items()


def test_a_trace_of_so_many_steps(step: Callable[[], None], tmp_path: Path) -> None:
    capture = jaxobs.capture("profile", steps=3)
    assert capture.result is None
    for _ in range(3):
        step()
    capture.wait(120)
    step()
    assert capture.result == "done", capture
    assert capture.path == str(tmp_path / capture.name)
    assert (capture.detail or "").startswith("3 steps of `train.step` in ")
    assert traced(capture, "PjitFunction(traced_train_step)") == 3
    assert [each.name for each in tmp_path.iterdir()] == [capture.name]


def test_the_steps_of_one_function(step: Callable[[], None]) -> None:
    other = jaxobs.jit(lambda x: x + 1, name="other")
    other(1.0)
    capture = jaxobs.capture("profile", steps=2, function="train.step")
    for _ in range(4):
        other(1.0)
    step()
    assert capture.result is None
    step()
    assert (capture.wait(120).detail or "").startswith("2 steps of `train.step`")


def test_a_trace_ends_by_time_where_no_steps_come(step: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=1.0, monotonic=lambda: clock.now)
    monkeypatch.setattr("jaxobs.actions.profile.time", clock)
    capture = jaxobs.capture("profile", steps=5, seconds=0.2)
    step()
    assert capture.result is None
    clock.now += 1.0
    assert capture.wait(120).result == "done"
    assert capture.detail == "1 step of `train.step` of 5 in 1 s, when its time was up."


def test_a_trace_where_no_step_can_be_counted(configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxobs.actions.profile.UNCOUNTED_SECONDS", 0.1)
    jnp.ones(3)
    capture = jaxobs.capture("profile").wait(120)
    assert capture.result == "done"
    assert "no function is instrumented" in (capture.detail or "")


def test_a_trace_is_stopped_early(step: Callable[[], None]) -> None:
    capture = jaxobs.capture("profile", steps=1000)
    step()
    assert capture.stop().wait(120).result == "done"
    assert (capture.detail or "").endswith("when it was stopped.")
    assert traced(capture, "PjitFunction(traced_train_step)") == 1


def test_python_calls_are_traced_where_asked_for(step: Callable[[], None]) -> None:
    """Not by default: it slows every call."""
    for python in (False, True):
        capture = jaxobs.capture("profile", steps=1, python=python)
        step()
        assert capture.wait(120).path is not None
        [file] = Path(capture.path or "").rglob("*.xplane.pb")
        assert (b"$test_actions.py" in file.read_bytes()) is python


def test_a_trace_of_the_program_s_own_goes_on(configure: Configure, step: Callable[[], None], tmp_path: Path) -> None:
    """A capture meanwhile is refused with a sentence, and does not keep the next one from being made."""
    configure(capture_interval=100.0)
    jax.profiler.start_trace(str(tmp_path / "own"))
    capture = jaxobs.capture("profile")
    assert (capture.result, capture.path) == ("refused", None)
    assert "own trace is running" in (capture.detail or "")
    jax.profiler.stop_trace()
    assert list((tmp_path / "own").rglob("*.xplane.pb"))
    assert [each.name for each in tmp_path.iterdir()] == ["own"]
    after = jaxobs.capture("profile", steps=1)
    step()
    assert after.wait(120).result == "done"


def test_a_program_that_ends_our_trace_and_begins_its_own(step: Callable[[], None], tmp_path: Path) -> None:
    capture = jaxobs.capture("profile", steps=2)
    jax.profiler.stop_trace()
    jax.profiler.start_trace(str(tmp_path / "own"))
    step()
    step()
    assert capture.wait(120).result == "done"
    assert "The program ended the trace itself" in (capture.detail or "")
    jax.profiler.stop_trace()
    assert list((tmp_path / "own").rglob("*.xplane.pb"))


def test_a_trace_that_cannot_be_written(step: Callable[[], None], tmp_path: Path) -> None:
    capture = jaxobs.capture("profile", steps=1)
    [unfinished] = tmp_path.iterdir()
    unfinished.rename(tmp_path / "moved")
    (tmp_path / unfinished.name).write_text("in the way")
    step()
    assert capture.wait(120).result == "failed", capture
    assert capture.path is None
    jax.profiler.start_trace(str(tmp_path / "own"))
    jax.profiler.stop_trace()


def test_one_at_a_time(step: Callable[[], None]) -> None:
    first = jaxobs.capture("profile", steps=1)
    second = jaxobs.capture("memory")
    assert second.result == "refused"
    assert f"{first.name} is in progress" in (second.detail or "")
    step()
    assert first.wait(120).result == "done"
    assert jaxobs.capture("memory").result == "done"


def test_not_too_often(configure: Configure) -> None:
    configure(capture_interval=100.0)
    jnp.ones(3)
    assert jaxobs.capture("memory").result == "done"
    refused = jaxobs.capture("memory")
    assert refused.result == "refused"
    assert 50 < (refused.retry_after or 0) <= 100
    assert "`capture_interval` is 100 s" in (refused.detail or "")
    assert jaxobs.capture("profile", seconds=0.05).wait(120).result == "done"
    configure(capture_interval=0.001)
    assert jaxobs.capture("memory").result == "done"


def test_not_too_many_bytes(configure: Configure, step: Callable[[], None], tmp_path: Path) -> None:
    configure(capture_max_bytes=200)
    assert "are left of `capture_max_bytes`" in (jaxobs.capture("memory").detail or "")
    capture = jaxobs.capture("profile", steps=1)
    step()
    assert capture.wait(120).result == "failed"
    assert "200 B were left of `capture_max_bytes`" in (capture.detail or "")
    assert list(tmp_path.iterdir()) == []
    configure()
    size = jaxobs.capture("memory").bytes or 0
    configure(capture_max_bytes=size)
    full = jaxobs.capture("memory")
    assert full.result == "refused"
    assert "Remove those no longer needed" in (full.detail or "")


def test_not_too_many_captures(configure: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jnp.ones(3)
    monkeypatch.setattr(folder, "MOST_CAPTURES", 2)
    (tmp_path / "memory-of-mine").mkdir()
    (tmp_path / "memory-20260101T000000Z-0-1-1").mkdir()
    stale = tmp_path / ".unfinished-profile-20260101T000000Z-0-1-2"
    stale.mkdir()
    assert "has 2 captures" in (jaxobs.capture("memory").detail or "")
    os.utime(stale, (1, 1))
    assert jaxobs.capture("memory").result == "done"
    assert not stale.exists()


def test_who_asks_again_and_again_does_not_fill_the_log(configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_REFUSALS_EVERY", 60.0)
    configure(capture_interval=100.0)
    jnp.ones(3)
    for _ in range(20):
        jaxobs.capture("memory")
    assert [each["result"] for each in events()] == ["done", "refused"]
    assert jaxobs.snapshot().observer.dropped["action_refusals"] == 18


@pytest.mark.usefixtures("configure")
def test_misuse_is_told_at_once() -> None:
    jaxobs.jit(lambda x: x, name="known.one")
    for name, given, told in (
        ("heap", {}, r"no action 'heap'. Known actions: memory, profile"),
        ("memory", {"steps": 3}, r"`memory` has no parameter `steps`. Known parameters: none"),
        ("profile", {"steps": 0}, r"`steps` is 0, but must be from 1 to 1000"),
        ("profile", {"steps": True}, r"`steps` is True, which is not a valid integer"),
        ("profile", {"seconds": float("nan")}, r"`seconds` is nan, but must be from 0.01 to 600"),
        (
            "profile",
            {"function": "nobody"},
            r"'nobody', which is not instrumented. Instrumented functions: .*known.one",
        ),
    ):
        with pytest.raises(ParameterError, match=told):
            jaxobs.capture(name, **given)
    assert events() == []


@pytest.mark.usefixtures("configure")
def test_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXOBS_DISABLED", "1")
    capture = jaxobs.capture("memory")
    assert (capture.result, capture.path) == ("refused", None)


@pytest.mark.parametrize(
    ("kind", "value", "parsed"),
    [
        (int, "5", 5), (int, 5.0, 5), (int, "x", None), (int, 5.5, None), (int, [5], None), (int, "9" * 5000, None),
        (float, "1.5", 1.5), (float, float("inf"), None), (float, True, None), (bool, "TRUE", True), (bool, 0, False),
        (bool, "perhaps", None), (str, "f", "f"), (str, "", None), (str, 5, None),
    ],
)  # fmt: skip
def test_parameters_from_texts_and_from_values(kind: type, value: Any, parsed: Any) -> None:
    parameter = Parameter("size", kind, None, "It is a size.", least=0, most=100)
    if parsed is not None:
        assert parameter.parsed(value) == parsed
    else:
        with pytest.raises(ParameterError, match=r"`size` is .*It is a size\."):
            parameter.parsed(value)


def test_every_action_is_whole() -> None:
    for name, module in actions.known().items():
        assert module.__name__.endswith(f".{name}") and module.ABOUT.endswith(".")
        assert isinstance(module.WAITED_FOR, bool)
        for action in module.PARAMETERS:
            assert action.about.endswith(".")
            assert action.kind not in (int, float) or action.least > float("-inf") < action.most < float("inf")


def test_the_directory_in_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert folder.directory(Settings(capture_directory="/x/y", event_log="/z/log")) == "/x/y"
    assert folder.directory(Settings(event_log="/z/log")) == "/z"
    private = folder.Folder(Settings())
    assert Path(private.path).parent == tmp_path
    assert private.room() == Settings().capture_max_bytes
    assert stat.S_IMODE(os.stat(private.path).st_mode) == 0o700
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    for spoil in (
        lambda: os.chmod(private.path, 0o755),
        lambda: (os.rmdir(private.path), os.symlink(tmp_path / "elsewhere", private.path)),
    ):
        spoil()
        with pytest.raises(Exception, match="is not a directory of this user alone"):
            private.room()


def test_a_directory_that_cannot_be_made(configure: Configure, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    configure(capture_directory=str(tmp_path / "file" / "captures"))
    jnp.ones(3)
    capture = jaxobs.capture("memory")
    assert capture.result == "refused"
    assert str(tmp_path / "file") in str(capture.detail) and "Set `capture_directory`" in str(capture.detail)


def test_the_token_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "sesame" not in repr(config.resolve({}, {"JAXOBS_ACTION_TOKEN": "sesame"}))
    assert config.resolve({}, {"JAXOBS_ACTION_TOKEN": "sesame"}).action_token == "sesame"
    with pytest.raises(jaxobs.SettingError) as raised:
        config.resolve({"action_token": "sesame\0"})
    assert "sesame" not in str(raised.value)
