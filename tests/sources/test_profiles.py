"""Samples of where the devices' time goes, in real programs: what they say, and that nothing fails by them."""

from __future__ import annotations

import pathlib
import textwrap
import threading
import time
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from helpers import run_programs
from helpers.paths import ROOT

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

START = """
    import os, sys, time, urllib.request
    import jax, jax.numpy as jnp
    import jaxobs

    @jax.jit
    def train_step(weights, batch):
        with jax.named_scope("layer"):
            return jnp.tanh(batch @ weights) @ weights.T

    weights, batch = jnp.ones((256, 256)), jnp.ones((64, 256))
    until = time.monotonic() + 100

    def events():
        return jaxobs.snapshot().profile.samples if jaxobs.snapshot().profile else 0
"""


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
    """However many it takes while samples are taken all the time."""
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
    """A sample is put off for a moment."""
    store = stores.current()
    store.begin(1, OpenCompilation("step", "compile", time.time(), "MainThread"))
    assert sampling._next() == profile_sampling.BUSY_SECONDS
    assert samples() == []
    store.end(1, "compile")
    assert sampling._next() == 60.0
    assert len(samples()) == 1


def test_none_is_taken_while_a_checkpoint_is_written(sampling: ProfileSampling) -> None:
    """Nor is one finished during which one begins."""
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
    """Captures, which are such traces, do so too."""
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
    """Each of eight devices has its own share."""
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

LOOP = """
    import numpy as np
    jaxobs.install()

    def count():
        number = 0
        while True:
            number += 1
            yield number

    def loader():
        for number in count():
            time.sleep(0.03)
            yield np.ones((64, 256), np.float32)

    def ready():
        kept = np.ones((64, 256), np.float32)
        for number in count():
            yield kept

    def log_metrics():
        time.sleep(0.03)  # logged

    large = np.ones(2**24 + 1, np.float32)[1:]

    @jax.jit
    def heavy_step(weights, batch):
        for _ in range(40):
            batch = jnp.tanh(batch @ weights)
        return batch

    def findings():
        return [each for each in jaxobs.snapshot().findings if each.finding == "idle_devices"]

    def over(batches):
        for number, batch in zip(count(), batches):
            seen = jaxobs.snapshot() if number % 10 == 0 else None
            enough = seen is not None and seen.profile is not None and seen.profile.samples >= 12
            if (seen is not None and findings()) or enough or time.monotonic() > until:
                break
            yield batch
"""

FAULTS = {
    "input": ("for batch in over(loader()):\n    out = train_step(weights, batch)", "time.sleep(0.03)"),
    "dispatch": ("for batch in over(ready()):\n    out = train_step(weights, batch)\n    log_metrics()", "# logged"),
    "transfer": (
        "for batch in over(ready()):\n    out = train_step(weights, batch)\n    moved = jax.device_put(large)\n"
        "    moved.block_until_ready()",
        "moved",
    ),
    "healthy": ("for batch in over(ready()):\n    out = heavy_step(weights, batch).block_until_ready()", None),
}
"""By the reason of the finding: a loop, and what the line that it names says."""


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named_with_its_line(fault: str, tmp_path: pathlib.Path) -> None:
    """A healthy program has no finding."""
    loop, line = FAULTS[fault]
    program = tmp_path / "train.py"
    end = "\nfor each in findings():\n    print(each.subject, each.where)\nprint(jaxobs.snapshot().profile.samples)\n"
    program.write_text(textwrap.dedent(START) + textwrap.dedent(LOOP) + loop + end, encoding="utf-8")
    done = run_programs.run_file(
        program, PYTHONPATH=str(ROOT), JAXOBS_PROFILE_INTERVAL="0.5", JAXOBS_SAMPLE_INTERVAL="0.2"
    )
    assert done.returncode == 0, done.stderr
    *found, samples = done.stdout.splitlines()
    assert int(samples) >= 3
    if line is None:
        assert found == []
        return
    [(subject, where)] = [each.split(" ", 1) for each in found]
    assert subject == fault
    path, _, number = where.rpartition(":")
    assert path == str(program)
    assert line in program.read_text(encoding="utf-8").splitlines()[int(number) - 1]


WORK = """
    import numpy as np
    jaxobs.install()
    NAMES = ("copies_in_step", "far_from_roofline", "float64_operations", "replicated_operations")

    def findings():
        return [each for each in jaxobs.snapshot().findings if each.finding in NAMES]

    def enough():
        profile = jaxobs.snapshot().profile
        return findings() or time.monotonic() > until or profile is not None and profile.samples >= 12
"""

TURNED = """
    @jax.jit
    def turn(x):
        return jnp.transpose(x, (2, 0, 1)), jnp.tanh(x[:64]).sum()

    x = jnp.ones((300, 300, 300))
    while not enough():
        for _ in range(5):
            x, loss = turn(x)
        x.block_until_ready()
"""

SCANNED = """
    jax.config.update("jax_enable_x64", True)
    weights = jnp.ones((256, 256), jnp.float32)
    start = FIRST

    @jax.jit
    def step(weights, batch):
        def body(carry, row):
            return jnp.tanh(carry @ weights) + row, None  # scanned

        return jax.lax.scan(body, start, batch)[0].sum()

    batch = jnp.ones((16, 64, 256), jnp.float32)
    while not enough():
        for _ in range(5):
            loss = step(weights, batch)
        loss.block_until_ready()
"""

DIVIDED = """
    mesh = jax.sharding.Mesh(jax.devices(), ("data",))

    def put(x, *axes):
        return jax.device_put(x, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes)))

    @jax.jit
    def step(weights, batch):
        def loss(weights):
            return jnp.tanh(batch @ weights).mean()  # product

        return weights - 0.1 * jax.grad(loss)(weights)

    weights, batch = put(jnp.ones((512, 512))), put(jnp.ones((512, 512)), *SPLIT)
    while not enough():
        for _ in range(3):
            weights = step(weights, batch)
        weights.block_until_ready()
"""

WORKS = {
    "copies": (TURNED, "copies_in_step turn", None),
    "float64": (SCANNED.replace("FIRST", "np.zeros((64, 256))"), "float64_operations step", "# scanned"),
    "float32": (SCANNED.replace("FIRST", "np.zeros((64, 256), np.float32)"), "", None),
    "replicated": (DIVIDED.replace("*SPLIT", ""), "replicated_operations step", "# product"),
    "sharded": (DIVIDED.replace("*SPLIT", '"data"'), "", None),
}
"""Programs by what the devices do: the program, the finding and its function, and what the line that it names says."""


@pytest.mark.slow
@pytest.mark.parametrize("work", WORKS)
def test_work_that_need_not_be_is_named_with_its_line(work: str, tmp_path: pathlib.Path) -> None:
    """Copies, float64 by accident, what every device computes in full; the same programs done well have none."""
    loop, named, line = WORKS[work]
    program = tmp_path / "train.py"
    end = """
    for each in findings():
        print(each.finding, each.function.rpartition(".")[2], each.where, sep="|")
    """
    program.write_text("".join(map(textwrap.dedent, (START, WORK, loop, end))), encoding="utf-8")
    done = run_programs.run_file(
        program, PYTHONPATH=str(ROOT), JAXOBS_PROFILE_INTERVAL="0.5", JAXOBS_SAMPLE_INTERVAL="0.2",
        XLA_FLAGS="--xla_force_host_platform_device_count=4" if loop.startswith(DIVIDED[:40]) else "",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = [each.split("|") for each in done.stdout.splitlines()]
    assert [" ".join(each[:2]) for each in found] == ([named] if named else [])
    if line is not None:
        number = int(found[0][2].rpartition(":")[2])
        assert line in program.read_text(encoding="utf-8").splitlines()[number - 1]


SLOWER = """
    import numpy as np
    jaxobs.install()
    kept = np.ones((64, 256), np.float32)
    history = []

    @jax.jit
    def heavy_step(weights, batch):
        for _ in range(40):
            batch = jnp.tanh(batch @ weights)
        return batch

    def samples():
        profile = jaxobs.snapshot().profile
        return 0 if profile is None else profile.samples

    def findings():
        return [each for each in jaxobs.snapshot().findings if each.finding == "step_time_regression"]

    number = 0
    while not (number % 10 == 0 and (findings() or samples() >= LIMIT)) and time.monotonic() < until:
        out = heavy_step(weights, kept).block_until_ready()
        if samples() >= 10 and GROWS:
            time.sleep(0.05)  # the host's part grows
        number += 1
    for each in findings():
        print(each.function, "idle for longer" in each.summary, each.where)
"""


@pytest.mark.slow
@pytest.mark.parametrize("grows", [True, False])
def test_a_real_step_that_takes_longer_than_at_first(grows: bool, tmp_path: pathlib.Path) -> None:
    """On a CPU, too, where the devices' work takes as long as before; a steady loop has none."""
    program = tmp_path / "train.py"
    text = SLOWER.replace("GROWS", str(grows)).replace("LIMIT", "40" if grows else "24")
    program.write_text(textwrap.dedent(START) + textwrap.dedent(text), encoding="utf-8")
    done = run_programs.run_file(
        program, PYTHONPATH=str(ROOT), JAXOBS_PROFILE_INTERVAL="0.5", JAXOBS_SAMPLE_INTERVAL="0.2"
    )
    assert done.returncode == 0, done.stderr
    if not grows:
        assert done.stdout == ""
        return
    _, idle, where = done.stdout.split(" ", 2)
    assert idle == "True"
    number = int(where.rpartition(":")[2])
    assert "# the host's part grows" in program.read_text(encoding="utf-8").splitlines()[number - 1]
