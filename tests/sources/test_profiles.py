"""Samples of where the devices' time goes, in real programs: what they say, and that nothing fails by them."""

import json
import pathlib
import textwrap
import threading
import time
import tomllib
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from helpers import run_programs
from helpers.paths import ROOT
from helpers.run_programs import programs

from jaxobs.base.config import Settings
from jaxobs.facts.compilations import OpenCompilation
from jaxobs.facts.profile_samples import ProfileSample
from jaxobs.internals.short_traces import ShortTrace
from jaxobs.sources import profiles
from jaxobs.sources.support import profile_sampling
from jaxobs.sources.support.profile_sampling import ProfileSampling
from jaxobs.state import store as stores
from jaxobs.state.store import Store
from jaxobs.state.wall import Wall

pytestmark = pytest.mark.usefixtures("fresh")

WAIT = 120.0
BUDGET, MOST_BUDGET = profile_sampling.BUDGET, profile_sampling.MOST_BUDGET

START = programs(__file__)["start"]


def ran(
    program: str, folder: pathlib.Path, interval: float = 0.2, **variables: str
) -> tuple[str, list[dict[str, Any]]]:
    """Output and `profile` events of a program with samples; it must end well and say nothing else."""
    path = folder / "events.jsonl"
    done = run_programs.run(
        textwrap.dedent(START) + textwrap.dedent(program), JAXOBS_EVENT_LOG=str(path), PYTHONPATH=str(ROOT),
        JAXOBS_PROFILE_INTERVAL=str(interval), JAXOBS_SAMPLE_INTERVAL="0.1", JAXOBS_RAISE_INTERNAL_ERRORS="1",
        **variables,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, run_programs.events(path, "profile")


def test_a_real_loop_is_sampled_into_metrics_and_events(tmp_path: pathlib.Path) -> None:
    """Function, category and device as everywhere else; nothing is left in the folder of temporary files."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    printed, events = ran(
        """
        handle = jaxobs.start(port=0)
        while events() < 3 and time.monotonic() < until:
            for _ in range(20):
                batch = train_step(weights, batch)
            batch.block_until_ready()
        for line in urllib.request.urlopen(handle.url + "/metrics").read().decode().splitlines():
            if line.startswith(("jax_profile_", "jax_device_busy", "jax_collective", "jaxobs_internal")):
                print(line)
        """,
        tmp_path, TMPDIR=str(temporary),
    )  # fmt: skip
    assert len(events) >= 3
    for event in events:
        assert event["window_seconds"] > 0
        assert all(0 <= busy <= 1 for busy in event["busy"].values())
    functions = {row["function"]: row for each in events for row in each["functions"]}
    assert functions["__main__.train_step"]["seconds"]["matmul"] > 0
    [top, *_] = max(events, key=lambda each: sum(each["busy"].values()))["operations"]
    assert top["function"] == "__main__.train_step"
    assert {row["scope"] for each in events for row in each["operations"]} & {
        "jit(train_step)/layer/dot_general", "jit(train_step)/layer/tanh", "jit(train_step)/layer/transpose",
    }  # fmt: skip
    assert 'jax_profile_device_seconds_total{function="__main__.train_step",category="matmul"}' in printed
    assert "jax_profile_window_seconds_total" in printed
    assert 'jax_device_busy_ratio{device="cpu:0"}' in printed
    assert "jax_collective_exposed" not in printed, "there is one device"
    assert "jaxobs_internal" not in printed
    assert list(temporary.rglob("*.pb")) == []


def test_the_programs_own_traces_never_fail(tmp_path: pathlib.Path) -> None:
    printed, _ = ran(
        """
        from jaxobs.sources.support import profile_sampling
        profile_sampling.BUDGET = profile_sampling.MOST_BUDGET = 10.0
        profile_sampling.BUSY_SECONDS = 0.01
        jaxobs.install()
        taken = 0
        while (taken < 12 or events() < 3) and time.monotonic() < until:
            with jax.profiler.trace(sys.argv[0] + "traces" + str(taken)):
                batch = train_step(weights, batch).block_until_ready()
            taken += 1
            for _ in range(50):
                batch = train_step(weights, batch)
            batch.block_until_ready()
            time.sleep(0.05)
        print(taken >= 12, events() >= 3)
        """.replace("sys.argv[0] + ", f"{str(tmp_path) + '/'!r} + "),
        tmp_path, interval=0.02,
    )  # fmt: skip
    assert printed.split() == ["True", "True"]
    assert len(list(tmp_path.rglob("*.xplane.pb"))) >= 12


def test_the_exit_waits_for_no_sample(tmp_path: pathlib.Path) -> None:
    """A sample that would take minutes is given up, and the profiler ended before JAX is taken down."""
    printed, events = ran(
        """
        from jaxobs.internals.short_traces import ShortTrace
        from jaxobs.sources.support import profile_sampling
        profile_sampling.UNKNOWN_SECONDS = profile_sampling.MOST_SECONDS = profile_sampling.LEAST_SECONDS = 1000.0
        jaxobs.install()
        train_step(weights, batch)
        while ShortTrace.latest is None and time.monotonic() < until:
            time.sleep(0.01)
        print(ShortTrace.latest is not None)
        """,
        tmp_path, interval=0.05,
    )  # fmt: skip
    assert printed.split() == ["True"]
    assert events == []


def test_a_forked_child_takes_no_samples(tmp_path: pathlib.Path) -> None:
    """JAX doesn't survive a fork, and its parent's samples aren't its own."""
    printed, _ = ran(
        """
        import threading, warnings
        warnings.simplefilter("ignore")
        jaxobs.install()
        while events() < 1 and time.monotonic() < until:
            batch = train_step(weights, batch).block_until_ready()
        child = os.fork()
        if child == 0:
            os._exit(sum("profile" in each.name for each in threading.enumerate()))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        seen = events()
        while events() <= seen and time.monotonic() < until:
            batch = train_step(weights, batch).block_until_ready()
        print(events() > seen)
        """,
        tmp_path,
    )
    assert printed.split() == ["0", "True"]


# ---------------------------------------------------------------------------------------------- one process


@pytest.fixture
def sampling(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProfileSampling]:
    """Sampling whose thread sleeps, so that a test calls it."""
    jnp.ones(3).block_until_ready()
    store = stores.current()
    store.configure(Settings(profile_interval=3600.0))
    monkeypatch.setattr(profile_sampling, "FIRST_SECONDS", 3600.0)
    monkeypatch.setattr(profile_sampling, "BUDGET", 1.0)  # whatever a loaded machine makes of it
    monkeypatch.setattr(profile_sampling, "MOST_BUDGET", 1.0)
    made = ProfileSampling(store, 60.0)
    yield made
    made.stop()


def samples() -> list[ProfileSample]:
    """Samples recorded so far."""
    return [each for each in stores.current().events(kind="profile")[0] if isinstance(each, ProfileSample)]


def test_none_is_taken_while_something_compiles(sampling: ProfileSampling) -> None:
    store = stores.current()
    store.begin(1, OpenCompilation("step", "compile", time.time(), "MainThread"))
    assert sampling._next() == profile_sampling.BUSY_SECONDS
    assert samples() == []
    store.end(1, "compile")
    assert sampling._next() == 60.0
    assert len(samples()) == 1


def test_none_is_taken_while_a_checkpoint_is_written(sampling: ProfileSampling) -> None:
    wall = stores.current().part(Wall)
    scope = wall.enter("checkpoint")
    assert sampling._next() == profile_sampling.BUSY_SECONDS
    wall.leave(scope)
    assert samples() == []


def test_one_under_way_is_given_up_when_something_compiles(
    sampling: ProfileSampling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time that the compiler takes from the devices is no step of the program's."""
    monkeypatch.setattr(profile_sampling, "UNKNOWN_SECONDS", WAIT)
    monkeypatch.setattr(profile_sampling, "MOST_SECONDS", WAIT)
    thread = threading.Thread(target=sampling._next)
    thread.start()
    until = time.monotonic() + WAIT
    while ShortTrace.latest is None and time.monotonic() < until:
        time.sleep(0.001)
    stores.current().begin(1, OpenCompilation("step", "compile", time.time(), "MainThread"))
    thread.join(WAIT)
    assert not thread.is_alive()
    assert ShortTrace.latest is None
    assert samples() == []


def test_a_programs_own_trace_puts_samples_off(sampling: ProfileSampling, tmp_path: pathlib.Path) -> None:
    with jax.profiler.trace(str(tmp_path)):
        assert sampling._next() == profile_sampling.BUSY_SECONDS
    assert samples() == []


def test_samples_that_cost_much_are_taken_less_often(
    sampling: ProfileSampling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half as often above 0.1 % of the time between them, and as often as wanted again below a quarter of that."""
    monkeypatch.setattr(profile_sampling, "BUDGET", BUDGET)
    monkeypatch.setattr(profile_sampling, "MOST_BUDGET", MOST_BUDGET)
    sampling._weigh(0.061)
    assert sampling.interval == 120.0
    sampling._weigh(0.061)
    assert sampling.interval == 120.0
    sampling._weigh(0.029)
    assert sampling.interval == 60.0
    sampling._weigh(0.0)
    assert sampling.interval == 60.0
    for _ in range(20):
        sampling._weigh(1e6)
    assert sampling.interval == profile_sampling.LONGEST_INTERVAL


def test_an_unreadable_trace_is_a_note(sampling: ProfileSampling, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ShortTrace, "end", lambda self: (self._end(), b"\xff\xff nothing")[1])
    sampling._next()
    assert samples() == []
    assert any("could not be read" in each for each in stores.current().snapshot(fresh=False).observer.notes)


def test_a_large_trace_is_not_read_and_the_next_is_shorter(
    sampling: ProfileSampling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The size of a trace bounds the memory and the time that reading takes."""
    monkeypatch.setattr(profile_sampling, "MOST_BYTES", 10)
    monkeypatch.setattr(profile_sampling, "MANY_BYTES", 10)
    sampling._next()
    assert samples() == []
    assert sampling._shorter == 0.5
    assert stores.current().snapshot(fresh=False).observer.dropped == {"profile_samples": 1}


def test_the_setting_begins_and_ends_it() -> None:
    """The setting also acts while the program runs; it is off by default."""
    store = Store()
    source = profiles.source(store)

    def threads() -> int:
        return sum(each.name == "jaxobs-profile-samples" for each in threading.enumerate())

    source.sample()
    assert threads() == 0
    store.configure(Settings(profile_interval=60.0))
    source.sample()
    source.sample()
    assert threads() == 1
    store.configure(Settings())
    source.sample()
    assert threads() == 0
    store.configure(Settings(profile_interval=60.0))
    source.sample()
    source.ending()
    source.sample()
    assert threads() == 0


def test_a_jax_without_such_a_profiler_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles.short_traces, "_library", lambda: None)
    store = Store(Settings(profile_interval=60.0))
    profiles.source(store).sample()
    observer = store.snapshot(fresh=False).observer
    assert observer.capabilities["short_traces"] is False
    assert any("profile_interval" in each for each in observer.notes)


def test_exchanges_between_devices_are_counted_by_function(sampling: ProfileSampling) -> None:
    mesh = jax.sharding.Mesh(jax.devices(), ("data",))
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))

    @jax.jit
    def summed(x: jax.Array) -> jax.Array:
        return (x @ x.T).sum()

    x = jax.device_put(jnp.ones((64, 64)), split)
    summed(x).block_until_ready()
    stopping = threading.Event()

    def program() -> None:
        while not stopping.is_set():
            summed(x).block_until_ready()

    thread = threading.Thread(target=program)
    thread.start()
    try:
        sampling._next()
    finally:
        stopping.set()
        thread.join(WAIT)
    profile = stores.current().snapshot(fresh=False).profile
    assert profile is not None
    assert sorted(profile.busy) == [f"cpu:{number}" for number in range(8)]
    [function] = [each for each in profile.exposed_seconds if each.endswith("summed")]
    assert 0 < profile.exposed_seconds[function] <= 8 * profile.window_seconds
    assert profile.device_seconds[function]["collective"] > 0


# ------------------------------------------------------------------------------------------- planted faults

PLANTED = tomllib.loads(pathlib.Path(__file__).with_name("planted_faults.toml").read_text(encoding="utf-8"))
COMMON = PLANTED.pop("common")
WELL = {"float64": ("np.float64", "np.float32"), "replicated": ("*()", '"data"')}
PLANTED |= {
    f"{name} done well": {key: value for key, value in PLANTED[name].items() if key not in ("found", "line")}
    | {"source": PLANTED[name]["source"].replace(*change)}
    for name, change in WELL.items()
}
END = """
for each in findings():
    told = {"finding": each.finding, "subject": each.subject, "function": each.function.rpartition(".")[2]}
    print(json.dumps(told | {"where": each.where, "summary": each.summary}))
print(samples())
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_named_with_its_line(name: str, tmp_path: pathlib.Path) -> None:
    """Rest and work of the devices that need not be; the same programs done well have no finding."""
    planted, program = PLANTED[name], tmp_path / "train.py"
    source = f"NAMES = {planted['names']}\n{textwrap.dedent(START)}{COMMON}{planted['source']}{END}"
    program.write_text(source, encoding="utf-8")
    flags = {"XLA_FLAGS": planted["flags"]} if "flags" in planted else {}
    done = run_programs.run_file(
        program, PYTHONPATH=str(ROOT), JAXOBS_PROFILE_INTERVAL="0.5", JAXOBS_SAMPLE_INTERVAL="0.2", **flags
    )
    assert done.returncode == 0, done.stderr
    *lines, taken = done.stdout.splitlines()
    assert int(taken) >= 3
    assert len(lines) == ("found" in planted), lines
    for found in map(json.loads, lines):
        assert {key: found[key] for key in planted["found"] if key != "summary"}.items() <= planted["found"].items()
        assert planted["found"].get("summary", "") in found["summary"]
        if "line" in planted:
            path, _, number = found["where"].rpartition(":")
            assert path == str(program) and planted["line"] in source.splitlines()[int(number) - 1]
