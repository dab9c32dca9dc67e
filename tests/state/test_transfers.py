"""Host transfers are counted where they happen: which line, how many, how large, and for how long they hold it up."""

import pickle
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.run_programs import events
from helpers.threads import at_once, elsewhere
from jax._src import util
from jax._src.array import ArrayImpl
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import jaxobs
from jaxobs.base.config import Settings
from jaxobs.facts.transfers import Transfer, TransferState
from jaxobs.internals import code_events, post_hook
from jaxobs.internals import transfers as seen
from jaxobs.session import lifecycle
from jaxobs.sources.transfers import TransfersSource
from jaxobs.state import store
from jaxobs.state.transfers import MOST_SITES, UNKNOWN, Transfers, site_of
from jaxobs.state.wall import Wall

pytestmark = pytest.mark.usefixtures("fresh")

NUMBERS = np.arange(1000, dtype=np.float32)
BYTES = NUMBERS.nbytes


@pytest.fixture
def watching(fresh: None) -> Iterator[None]:
    """Installed, with the setting on."""
    jaxobs.install(transfers=True)
    yield
    jaxobs.uninstall()


@jax.jit
def total(x: Any) -> Any:
    return x.sum()


def counted(call: Callable[[], Any]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Number and bytes that `call` moved to the host, and to the devices."""

    def figures() -> np.ndarray:
        found = {"device_to_host": [0, 0], "host_to_device": [0, 0]}
        for site in jaxobs.snapshot().transfers:
            found[site.direction][0] += site.count
            found[site.direction][1] += site.bytes
        return np.array(list(found.values()))

    before = figures()
    call()
    to_host, to_device = (figures() - before).tolist()
    return tuple(to_host), tuple(to_device)


def sharded() -> Any:
    """An array over all eight devices, whose values JAX copies together and keeps."""
    mesh = Mesh(np.array(jax.devices()), ("data",))
    return jax.device_put(NUMBERS, NamedSharding(mesh, PartitionSpec("data")))


NOTHING = (0, 0)


@pytest.mark.usefixtures("watching")
def test_reads_are_counted_with_their_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    x, loss = jax.device_put(NUMBERS), total(NUMBERS)
    whole = ((1, BYTES), NOTHING)
    assert counted(lambda: float(loss)) == ((1, 4), NOTHING)
    assert counted(lambda: bool(loss > 0)) == ((1, 1), NOTHING)
    assert counted(lambda: print(x)) == whole
    assert counted(lambda: f"{loss:.3f}") == ((1, 4), NOTHING)
    assert counted(x.tolist) == whole
    assert counted(lambda: pickle.dumps(x)) == whole
    assert counted(lambda: jax.device_get({"a": x, "b": [loss, 3, NUMBERS]})) == ((2, BYTES + 4), NOTHING)
    assert counted(lambda: x.__array__(np.float64)) == whole
    assert capsys.readouterr().out


@pytest.mark.usefixtures("watching")
def test_values_that_are_on_the_host_already_are_not_moved_again() -> None:
    """JAX keeps what it copied: the second read moves nothing. On one CPU device it keeps nothing."""
    x = sharded()
    assert counted(lambda: np.asarray(x)) == ((1, BYTES), NOTHING)
    assert counted(lambda: (np.asarray(x), x.tolist(), jax.device_get(x))) == (NOTHING, NOTHING)
    assert np.asarray(x).sum() == NUMBERS.sum()
    later = sharded()
    assert counted(later.copy_to_host_async) == (NOTHING, NOTHING)
    assert counted(lambda: np.asarray(later)) == ((1, BYTES), NOTHING)


@pytest.mark.usefixtures("watching")
def test_what_is_sent_is_counted_with_its_bytes() -> None:
    """Explicitly, by `jnp`, and as an argument; the first time, when JAX dispatches from Python, and ever after."""
    once = (NOTHING, (1, BYTES))
    assert counted(lambda: jax.device_put(NUMBERS)) == once
    assert counted(lambda: jax.device_put({"a": NUMBERS, "b": NUMBERS})) == (NOTHING, (2, 2 * BYTES))
    mesh = Mesh(np.array(jax.devices()), ("data",))
    copies = NamedSharding(mesh, PartitionSpec())
    assert counted(lambda: jax.device_put(NUMBERS, copies)) == (NOTHING, (1, 8 * BYTES))
    assert counted(sharded) == once
    on_host = NUMBERS.astype(np.float64)[:17]  # which becomes float32 on the way
    for _ in range(3):
        assert counted(lambda: jnp.asarray(on_host)) == (NOTHING, (1, 4 * 17))
        assert counted(lambda: jnp.array([1.0, 2.0, 3.0])) == (NOTHING, (1, 12))
        assert counted(lambda: total(on_host)) == (NOTHING, (1, 4 * 17))
    step = jaxobs.jit(lambda batch, *, scale: batch["x"] * scale)
    for _ in range(3):
        assert counted(lambda: step({"x": NUMBERS}, scale=2.0)) == once


@pytest.mark.usefixtures("watching")
def test_what_moves_nothing_is_not_counted() -> None:
    x = jax.device_put(NUMBERS)
    for _ in range(2):
        assert counted(lambda: (x * 2.0 + 1, total(x), x[3], jnp.zeros(7), jnp.asarray(x))) == (NOTHING, NOTHING)
    assert counted(lambda: (x.shape, len(x), x.dtype, x.is_ready(), x.block_until_ready())) == (NOTHING, NOTHING)
    assert counted(lambda: jax.make_jaxpr(lambda y: jnp.asarray(NUMBERS) + y)(x)) == (NOTHING, NOTHING)


@pytest.mark.usefixtures("watching")
def test_the_site_is_the_line_of_the_program() -> None:
    x = sharded()
    step = jaxobs.jit(total.__wrapped__)
    line = sys._getframe().f_lineno
    np.column_stack([x])
    for _ in range(2):
        step(NUMBERS)
    states = {each.site: each for each in jaxobs.snapshot().transfers if each.since}
    read, sent = (states[f"{__file__}:{line + number}"] for number in (1, 3))
    assert (read.direction, read.shape) == ("device_to_host", (1000,))
    assert sent == TransferState(
        site=f"{__file__}:{line + 3}", direction="host_to_device", count=2, bytes=2 * BYTES, shape=(1000,),
        dtype="float32", since=sent.since, seconds=sent.seconds,
    )  # fmt: skip


@pytest.mark.usefixtures("watching")
def test_what_jaxobs_reads_itself_is_not_counted() -> None:
    watched = sharded()
    rows = store.current().part(Transfers)
    before = rows.frozen()
    jaxobs.watch(loss=watched)
    lifecycle._session.sample()  # type: ignore[union-attr]
    assert watched._npy_value is not None
    assert rows.frozen() == before


def test_off_by_default_and_then_nothing_is_touched() -> None:
    original = vars(ArrayImpl)["_npy_value"]
    untouched = (original, util.test_event_listener)

    def touched() -> tuple[Any, Any]:
        return vars(ArrayImpl)["_npy_value"], util.test_event_listener

    def reads_are_told() -> bool:
        return any(code is seen._value_code() for ((code, _, _), *_) in code_events._watched.values())

    jaxobs.install(find_loops=False)  # which has the same listener on Python 3.11, for other events
    assert touched() == untouched
    assert not reads_are_told()
    assert counted(lambda: float(total(NUMBERS))) == (NOTHING, NOTHING)
    jaxobs.install(transfers=True)
    lifecycle._session.sample()  # type: ignore[union-attr]
    assert touched() != untouched
    assert counted(lambda: float(total(NUMBERS))) == ((1, 4), (1, BYTES))
    jaxobs.uninstall()
    assert touched() == untouched
    assert not reads_are_told()
    assert post_hook._Hooks.ours == ()
    assert jaxobs.snapshot().transfers[0].count, "what was counted stays"


def errors(call: Callable[[], Any]) -> tuple[str, list[tuple[str, str]]]:
    with pytest.raises((RuntimeError, ValueError, TypeError)) as caught:
        call()
    frames = traceback.extract_tb(caught.value.__traceback__)
    return f"{caught.type}: {caught.value}", [(each.filename, each.name) for each in frames]


def test_errors_and_their_tracebacks_are_as_without() -> None:
    def fail(_: Any) -> Any:
        raise ValueError("no value")

    failing = jax.jit(lambda x: jax.pure_callback(fail, jax.ShapeDtypeStruct((1000,), np.float32), x))

    def deleted() -> Any:
        x = sharded()
        x.delete()
        return np.asarray(x)

    programs: list[Callable[[], Any]] = [
        deleted,
        lambda: jax.device_put(NUMBERS, NamedSharding(Mesh(np.array(jax.devices()[:3]), ("a",)), PartitionSpec("a"))),
        lambda: jax.device_put(np.array(["text"])),
        lambda: jax.jit(float)(NUMBERS[0]),
        lambda: np.asarray(sharded()).__setitem__(0, 1.0),
    ]
    plain = [errors(each) for each in programs]
    jaxobs.install(transfers=True)
    assert [errors(each) for each in programs] == plain
    assert counted(lambda: errors(deleted)) == (NOTHING, (1, BYTES))
    text, _ = errors(lambda: failing(1.0).tolist())
    assert "no value" in text
    assert counted(lambda: float(total(NUMBERS))) == ((1, 4), (1, BYTES)), "it goes on"


@pytest.mark.usefixtures("watching")
def test_arrays_are_what_they_were() -> None:
    x, many = jax.device_put(NUMBERS), sharded()
    for array in (x, many):
        again = pickle.loads(pickle.dumps(array))
        assert type(again) is type(x) and (again == array).all()
        assert not np.asarray(array).flags.writeable and np.array(array, copy=True).flags.writeable
        assert np.asarray(array, dtype=np.float64).dtype == np.float64
        assert np.shares_memory(np.asarray(array), np.asarray(array))
    with jax.transfer_guard_host_to_device("disallow"), pytest.raises(RuntimeError, match="Disallowed"):
        total(NUMBERS)


def test_what_is_on_the_host_already(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU backend beside an accelerator, and an accelerator's pinned memory."""
    for default, platform, memory, there in (
        ("cpu", "cpu", "unpinned_host", False),
        ("gpu", "gpu", "device", False),
        ("gpu", "gpu", None, False),
        ("gpu", "gpu", "pinned_host", True),
        ("gpu", "cpu", "unpinned_host", True),
        ("tpu", "cpu", None, True),
        (None, "cpu", None, False),
    ):
        monkeypatch.setattr(seen, "default_platform", lambda default=default: default)
        assert seen._is_host_memory(platform, memory) is there, (default, platform, memory)


@pytest.mark.usefixtures("watching")
def test_threads_count_exactly() -> None:
    x = jax.device_put(NUMBERS)
    total(x).block_until_ready()
    total(NUMBERS)

    def work(_: int) -> None:
        for _ in range(100):
            x.tolist()
            total(NUMBERS)

    assert counted(lambda: at_once(8, work)) == ((800, 800 * BYTES), (800, 800 * BYTES))


@pytest.mark.usefixtures("watching")
def test_somebody_elses_listeners_are_told_as_well() -> None:
    """JAX's own test utilities take the place of the listener: it is shared, also where they hand on to us."""
    told: list[str] = []
    ours = util.test_event_listener

    def theirs(name: str, *args: Any) -> None:
        told.append(name)
        ours(name, *args)

    util.test_event_listener = theirs
    try:
        lifecycle._session.sample()  # type: ignore[union-attr]
        assert counted(lambda: jax.device_put(NUMBERS)) == (NOTHING, (1, BYTES))
        assert told == ["batched_device_put_start", "batched_device_put_end"]
        calls: list[Any] = []
        assert post_hook.put(lambda *call: calls.append(call))
        total(NUMBERS)
        assert counted(lambda: total(NUMBERS)) == (NOTHING, (1, BYTES))
        assert calls
    finally:
        jaxobs.uninstall()
        for each in post_hook._Hooks.ours:
            post_hook.take(each)
        util.test_event_listener = None


@pytest.mark.usefixtures("watching")
def test_blocks_that_jax_makes_do_not_hide_the_hook() -> None:
    """`grad` leaves a thread without a hook of its own, and so does `with jax.debug_nans(False)`."""

    @jax.jit
    def gradient(x: Any) -> Any:
        return jax.grad(lambda y: jnp.linalg.norm(total(y)) + jnp.nanmean(y))(x)

    for _ in range(2):
        gradient(NUMBERS)
        assert counted(lambda: gradient(NUMBERS)) == (NOTHING, (1, BYTES))
    loss = total(NUMBERS)
    for _ in range(2):
        with jax.debug_nans(False):
            pass
        float(loss)
        assert counted(lambda: total(NUMBERS)) == (NOTHING, (1, BYTES))


def moved(count: int = 1, seconds: float = 0.0, *, waited: bool = False) -> seen.Moved:
    """An array of four bytes that was moved to the host."""
    return seen.Moved("device_to_host", 4 * count, (count,), "float32", seconds, waited)


def a_frame() -> FrameType:
    return sys._getframe()


def test_only_the_copy_is_charged_to_transfers() -> None:
    """A wait for the computation stays what it was; and so does what a checkpoint reads, and other threads."""
    now = 0.0
    wall, rows, frame = Wall(lambda: now), Transfers(), a_frame()
    step = wall.enter("step")
    now = 3.0
    rows.take(moved(seconds=1.0), frame, wall)
    now = 7.0
    rows.take(moved(seconds=4.0, waited=True), frame, wall)
    checkpoint = wall.enter("checkpoint")
    now = 9.0
    rows.take(moved(seconds=2.0), frame, wall)
    wall.leave(checkpoint)
    elsewhere(lambda: rows.take(moved(seconds=1.0), frame, wall))
    wall.leave(step)
    spent = {name: seconds for name, seconds in wall.seconds().items() if seconds}
    assert spent == {"transfer": 1.0, "step": 6.0, "checkpoint": 2.0}
    (row,) = rows.frozen()
    assert (row.count, row.seconds, row.waits, row.wait_seconds) == (4, 4.0, 1, 4.0)


@pytest.mark.usefixtures("watching")
def test_the_wall_category_agrees_with_a_stopwatch() -> None:
    """Large copies in a loop of steps: never more, and at most 10 % less where nothing else came between."""
    mesh = Mesh(np.array(jax.devices()[:2]), ("data",))
    where = NamedSharding(mesh, PartitionSpec(None, "data"))
    large = np.ones((2048, 4096), np.float32)
    make = jax.jit(lambda x: x + 1, out_shardings=where)
    x = jax.device_put(large, where)
    make(x).block_until_ready()
    wall = store.current().part(Wall)
    shares = []
    for _ in range(20):
        with jaxobs.step("train"):
            y = make(x).block_until_ready()
            before, began = wall.seconds()["transfer"], time.perf_counter()
            np.asarray(y)
            watch, told = time.perf_counter() - began, wall.seconds()["transfer"] - before
            shares.append(told / watch)
    assert 0.9 <= max(shares) <= 1


def test_sites_are_bounded() -> None:
    source = TransfersSource(store.Store(Settings()))
    rows = source._store.part(Transfers)
    wall = Wall(lambda: 0.0)
    names: dict[str, Any] = {}
    for number in range(MOST_SITES + 5):
        exec(compile("import sys; frame = sys._getframe()", f"program{number}.py", "exec"), names)
        rows.take(moved(), names["frame"], wall)
    source.sample()
    found = {each.site: each.count for each in source._store.snapshot().transfers}
    assert len(found) == MOST_SITES + 1 and found["<other>"] == 5
    assert source._store.snapshot().observer.dropped == {"transfer_sites": 5}


def test_events_tell_of_new_lines_of_growth_and_of_the_end() -> None:
    """The first of each line, tenfold growth, and the totals: never each transfer."""
    rows, frame, wall = Transfers(), a_frame(), Wall(lambda: 0.0)

    def told(times: int, *, at_the_end: bool = False) -> list[int]:
        for _ in range(times):
            rows.take(moved(), frame, wall)
        return [each.count for each in rows.to_tell(all_of_them=at_the_end)]

    assert [told(times) for times in (1, 8, 1, 85, 5)] == [[1], [], [10], [], [100]]
    assert [told(times, at_the_end=True) for times in (0, 3)] == [[], [103]]
    recorded = store.current().record(Transfer(time=1.0, site="a.py:1", direction="device_to_host", count=1, bytes=4))
    assert recorded.kind == "transfer"


def test_a_library_on_a_thread_of_its_own_has_no_site() -> None:
    found: list[str | None] = []
    names: dict[str, Any] = {"found": found, "site_of": site_of, "sys": sys}
    exec(compile("def run():\n    found.append(site_of(sys._getframe()))", np.__file__, "exec"), names)
    thread = threading.Thread(target=names["run"])
    thread.start()
    thread.join()
    assert found == [UNKNOWN]


PROGRAM = """
import jax, numpy as np
x = jax.device_put(np.ones(1000, np.float32))
for _ in range(20):
    x = x + 1
    print(x[0])
"""


def test_run_tells_of_transfers_without_a_change_to_the_program(tmp_path: Any) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [
        sys.executable, "-m", "jaxobs", "run", "--port", "0", "--transfers", "--metrics-file", "metrics.txt",
        "--event-log", "log.jsonl", "program.py",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == [str(2.0 + number) for number in range(20)]
    metrics = (tmp_path / "metrics.txt").read_text()
    read, sent = (f'site="{tmp_path}/program.py:{line}"' for line in (6, 3))
    assert f'jax_host_transfers_total{{{read},direction="device_to_host"}} 20\n' in metrics
    assert f'jax_host_transfer_bytes_total{{{sent},direction="host_to_device"}} 4000\n' in metrics
    assert any(each["count"] == 20 for each in events(tmp_path / "log.jsonl", "transfer"))
