"""Leaks: a leaking program is told with what, where and how fast; healthy ones are not blamed."""

import dataclasses
import itertools
import json
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.made_by_hand import compilation
from helpers.run_programs import environment, events, programs, run
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import jaxobs
from jaxobs.facts.findings import Finding
from jaxobs.facts.memory import ArrayGroup
from jaxobs.findings import all_kinds, leaks
from jaxobs.findings.cases import UNKNOWN
from jaxobs.findings.growth import Point, Run
from jaxobs.findings.leaks import Leaks, Sample
from jaxobs.findings.memory import array_leak as array_leaks
from jaxobs.findings.memory import host_memory_leak as host_leaks
from jaxobs.recorder import host
from jaxobs.session import lifecycle

pytestmark = pytest.mark.usefixtures("fresh")

PER_SAMPLE = 5


def train_step(params: Any, batch: Any) -> tuple[Any, Any]:
    """A training step of a real program."""
    return params - 0.001 * batch.mean(), jnp.tanh(params @ batch)


def eval_step(params: Any, batch: Any) -> Any:
    """An evaluation of a real program."""
    return params @ batch


@pytest.fixture
def sample() -> Iterator[Callable[[], None]]:
    """Takes a sample each time: the thread takes none."""
    jaxobs.install(sample_interval=3600)
    current = lifecycle._session
    assert current is not None
    yield current.sample


def standing() -> list[Finding]:
    """The leaks in the snapshot."""
    kinds = {each.NAME for each in all_kinds.leaks()}
    return [each for each in jaxobs.snapshot().findings if each.finding in kinds]


def told() -> list[Finding]:
    """The leaks as events."""
    kinds = {each.NAME for each in all_kinds.leaks()}
    recorded = lifecycle._session.store.events(kind="finding")[0] if lifecycle._session else []
    return [each for each in recorded if isinstance(each, Finding) and each.finding in kinds]


def repeat(sample: Callable[[], None], times: int, work: Callable[[int], object]) -> None:
    """Does the work so many times, with samples meanwhile."""
    for number in range(times):
        work(number)
        if number % PER_SAMPLE == 0:
            sample()


def train(sample: Callable[[], None], steps: int, each: Callable[[int, Any], None]) -> None:
    """A training loop; `each` gets the number of the step and its output."""
    step, batch = jaxobs.jit(train_step), jnp.ones((64, 64))
    params = batch

    def work(number: int) -> None:
        nonlocal params
        params, output = step(params, batch)
        each(number, output)

    repeat(sample, steps, work)


# ------------------------------------------------------------------------------------------- a leaking program


def test_a_list_that_keeps_every_output(sample: Callable[[], None]) -> None:
    """The finding has number, pace, beginning and line, and is over when the list is cleared."""
    history: list[Any] = []
    train(sample, 300, lambda number, output: history.append(output))
    (leak,) = standing()
    assert (leak.finding, leak.ended) == ("array_leak", None)
    assert leak.function.endswith("train_step")
    assert leak.subject == "float32[64,64] on cpu:0"
    data = leak.data
    assert (data["shape"], data["dtype"]) == ([64, 64], "float32")
    assert data["arrays_per_call"] == pytest.approx(1.0, rel=0.02)
    assert data["bytes_per_call"] == pytest.approx(64 * 64 * 4, rel=0.02)
    assert data["bytes"] == data["arrays"] * 64 * 64 * 4
    (site,) = data["call_sites"]
    assert site.startswith(f"{__file__}:")
    assert site in leak.summary
    assert "per call of" in leak.summary and "At this pace" not in leak.summary, "a pace of a second says little"
    (group,) = [each for each in jaxobs.snapshot().array_groups if each.shape == (64, 64)]
    assert set(group.call_sites) == {site}
    history.clear()
    sample()
    assert standing()[0].ended is None, "the program may have ended"
    train(sample, 2 * PER_SAMPLE, lambda number, output: None)
    (over,) = standing()
    assert over.id == leak.id
    assert over.ended is not None
    assert "freed" in over.summary
    assert [each.ended is None for each in told()][-1] is False


def test_a_state_that_is_kept_is_one_leak(sample: Callable[[], None]) -> None:
    """Arrays of many shapes, made by one call at one line."""
    update = jaxobs.jit(lambda state: jax.tree.map(lambda x: x * 1.01, state), name="update")
    state = {f"layer {number}": jnp.ones((number + 3, 256)) for number in range(12)}
    history = []
    for number in range(260):
        state = update(state)
        history.append(state)
        if number % PER_SAMPLE == 0:
            sample()
    (leak,) = standing()
    assert leak.function == "update"
    assert leak.data["arrays_per_call"] == pytest.approx(12, rel=0.05)
    assert leak.data["bytes_per_call"] == pytest.approx(sum(range(3, 15)) * 256 * 4, rel=0.05)


def test_arrays_of_ever_new_shapes_are_one_leak(sample: Callable[[], None]) -> None:
    """No single shape grows; all together do."""
    history: list[Any] = []

    def keep(number: int, output: Any) -> None:
        history.append(jax.device_put(np.zeros((number + 1, 256), np.float32)))

    train(sample, 300, keep)
    (leak,) = standing()
    assert leak.subject == array_leaks.MANY
    assert leak.data["bytes"] > 2**20
    assert leak.data["arrays_per_call"] is None


def test_sharded_arrays_pile_up_on_each_device(sample: Callable[[], None]) -> None:
    """The sharding is part of what is told."""
    mesh = Mesh(np.array(jax.devices()[:4]).reshape(4), ("data",))
    batch = jax.device_put(np.ones((64, 1024), np.float32), NamedSharding(mesh, PartitionSpec("data")))
    step = jaxobs.jit(lambda x: x * 2, name="step")
    history: list[Any] = []
    repeat(sample, 300, lambda number: history.append(step(batch)))
    (leak,) = standing()
    assert leak.data["sharding"].startswith("P('data'")
    assert leak.data["bytes_per_call"] == 64 * 1024 * 4


HOST = programs(__file__)["host"]


def test_results_kept_on_the_host() -> None:
    """The process grows by what the step returns. In one of its own: here what others freed would be used again."""
    done = run(HOST)
    ((_, summary, data),) = (each for each in json.loads(done.stdout) if each[0] == "host_memory_leak")
    assert data["bytes_per_call"] == pytest.approx(2**21, rel=0.25)
    assert data["returned_bytes"] == 2**21
    assert "fetched and kept" in summary


def test_programs_pile_up(sample: Callable[[], None]) -> None:
    """A static argument that is another one each time."""
    step = jaxobs.jit(lambda x, n: x * n, static_argnums=1, name="step")
    batch = jnp.ones(8)
    repeat(sample, 160, lambda number: step(batch, number))
    (leak,) = [each for each in standing() if each.finding == "executable_leak"]
    assert leak.data["causes"]["static_argument"] > 100
    assert leak.data["more"] >= 48
    step.clear_cache()


def test_calls_of_a_loop_that_was_found_count(sample: Callable[[], None]) -> None:
    """`install()` alone knows the function that is called again and again."""
    step = jax.jit(lambda x: x + 1)
    batch, history = jnp.ones((128, 128)), []
    for _ in range(60):
        history.append(step(batch))
        history.append(step(batch))
        sample()
    (leak,) = standing()
    assert leak.function.endswith("<lambda>")
    assert "per call of" in leak.summary and "At this pace" not in leak.summary, "a pace of a second says little"


# ----------------------------------------------------------------------------------------------- healthy ones


HEALTHY: dict[str, tuple[Callable[[int], int], int, int]] = {
    "warm-up": (lambda step: min(step, 60), 1000, 0),
    "a cache that fills up": (lambda step: step % 90, 1000, 0),
    "a history cleared each epoch": (lambda step: step, 80, 0),
    "garbage that the collector frees now and then": (lambda step: step, 33, 2),
}
"""Places at which outputs of steps are kept, after how many steps they are forgotten, and how many of them are not."""


@pytest.mark.parametrize("program", HEALTHY)
def test_healthy_programs_are_not_blamed(program: str, sample: Callable[[], None]) -> None:
    """At no time, and not when they end."""
    place, every, left = HEALTHY[program]
    kept: dict[int, Any] = {}

    def keep(step: int, output: Any) -> None:
        kept[place(step)] = output
        if step % every == every - 1:
            for old in list(kept)[: len(kept) - left]:
                del kept[old]

    train(sample, 500, keep)
    assert told() == []
    _end()
    assert told() == []


def test_an_evaluation_is_not_blamed(sample: Callable[[], None]) -> None:
    """An evaluation keeps its outputs until it is over."""
    step = jaxobs.jit(eval_step)
    params = batch = jnp.ones((64, 64))

    def evaluate(number: int, output: Any) -> None:
        if number % 150 == 149:
            predictions: list[Any] = []
            repeat(sample, 130, lambda number: predictions.append(step(params, batch)))

    train(sample, 600, evaluate)
    assert told() == []


@pytest.mark.parametrize("seconds", [6.0, 12.0])
def test_a_host_leak_of_a_short_run_takes_ten_seconds(seconds: float) -> None:
    """A checkpoint's buffers, a second apart, grow for some seconds, too."""
    points = [Point(number, number * seconds / 4, number * 2.0**26, {"step": 10 * number}) for number in range(5)]
    grown = Run(points[0], points[-1], 4, "step", 40)
    assert host_leaks.HostLeaks().matters("resident", grown, Sample(time=seconds, calls={}), ()) is (seconds > 10.0)


def _end() -> None:
    assert lifecycle._session is not None
    for source in lifecycle._session.sources:
        if hasattr(source, "ending"):
            source.ending()


def test_calls_are_counted_before_memory_is_sampled(sample: Callable[[], None]) -> None:
    """Growth is compared with the calls of the same sample."""
    assert lifecycle._session is not None
    names = [type(each).__name__ for each in lifecycle._session.sources]
    assert names.index("FoundLoopsSource") < names.index("Devices")


def test_a_short_program_is_told_when_it_ends(sample: Callable[[], None]) -> None:
    """With its last sample, though the list is gone by then."""
    history: list[Any] = []
    train(sample, 120, lambda number, output: history.append(output))
    assert told() == []
    _end()
    history.clear()
    sample()
    (leak,) = told()
    assert leak.data["arrays_per_call"] == 1.0
    sample()
    assert len(told()) == 1


PROGRAM = programs(__file__)["program"]


@pytest.mark.slow
def test_a_real_run(tmp_path: pathlib.Path) -> None:
    """With nothing but the command line: the leak stands in the event log, and the healthy program's has none."""
    (tmp_path / "train.py").write_text(PROGRAM)
    runs = {}
    for keep in ("all", "some"):
        options = ["--port", "0", "--event-log", f"{keep}.jsonl"]
        command = [sys.executable, "-m", "jaxobs", "run", *options, "train.py", keep]
        runs[keep] = subprocess.Popen(command, cwd=tmp_path, env=environment(JAXOBS_SAMPLE_INTERVAL="0.05"))
    assert [each.wait(120) for each in runs.values()] == [0, 0]
    found = {keep: events(tmp_path / f"{keep}.jsonl", "finding") for keep in runs}
    assert [each for each in found["some"] if "leak" in each["finding"]] == []
    leak = [each for each in found["all"] if each["finding"] == "array_leak"][-1]
    assert leak["function"] == "__main__.train_step"
    assert leak["ended"] is None
    assert leak["data"]["arrays_per_call"] == pytest.approx(1.0, rel=0.1)
    assert list(leak["data"]["call_sites"]) == [str(tmp_path / "train.py") + ":17"]


# --------------------------------------------------------------------------------------------- facts by hand


def _group(count: int, size: int = 2**20, device: str = "gpu:0", **more: Any) -> ArrayGroup:
    known: dict[str, Any] = {"shape": (512, 512), "dtype": "float32", "sharding": "gpu:0", "memory_kind": "device"}
    return ArrayGroup(count=count, bytes_per_device={device: count * size}, **(known | more))


def _findings(samples: list[Sample]) -> list[Finding]:
    watching = Leaks()
    return [finding for each in samples for finding, news in watching.see(each) if news]


def _growing(number: int, **more: Any) -> Sample:
    known: dict[str, Any] = {"calls": {"train": 10 * number}, "groups": [_group(10 * number)]}
    return Sample(time=5.0 * number, **(known | more))


def _of_new_shapes(number: int, **more: Any) -> Sample:
    """Arrays are kept whose shape changes with every other sample."""
    groups = [_group(10 * min(2, number - first), shape=(512, 512 + first)) for first in range(0, number, 2)]
    return _growing(number, groups=groups, **more)


def test_one_group_is_reported_where_all_arrays_together_began_to_grow_before_it() -> None:
    """Some other arrays grew a little while the program began: the leak has a shape all the same, and is one."""

    def before(number: int) -> Sample:
        return Sample(time=5.0 * number, calls={"train": 10 * number}, groups=[_group(number, 2**10, dtype="int32")])

    def later(number: int) -> Sample:
        return _growing(number, groups=[_group(8, 2**10, dtype="int32"), _group(10 * (number - 8))])

    found = _findings([before(number) for number in range(8)] + [later(number) for number in range(9, 80)])
    assert {each.subject for each in found} == {"float32[512,512] on gpu:0"}


def test_when_the_device_will_be_full() -> None:
    """Free bytes and the pace of 2 MiB a second say when."""
    leak, *_ = _findings([_growing(number, left={"gpu:0": 2**30}) for number in range(30)])
    assert leak.data["bytes_per_second"] == 2 * 2**20
    assert leak.data["full_in_seconds"] == 512
    assert "gpu:0 will be full in 9 min" in leak.summary


def test_a_leak_that_soon_fills_the_memory_is_reported_early() -> None:
    """Half a minute is enough where an hour fills it, and nothing is said so early where memory lasts for days."""

    def seen(left: dict[str, int], samples: Callable[..., Sample] = _growing) -> tuple[float, Finding] | None:
        watching = Leaks()
        found = (
            (sample.time, finding)
            for sample in (samples(number, left=left) for number in range(60))
            for finding, news in watching.see(sample) if news
        )  # fmt: skip
        return next(found, None)

    early, late = seen({"gpu:0": 2**32}), seen({"gpu:0": 2**42})
    assert early is not None and early[0] <= 30.0 and early[1].data["full_in_seconds"] < 3600
    assert late is not None and late[0] > 120.0 and "full" not in late[1].summary
    on_host = seen(
        {"host": 2**32}, lambda number, **more: _growing(number, groups=[_group(10 * number, device="cpu:0")], **more)
    )
    assert on_host is not None and on_host[0] <= 30.0 and "the host will be full in 34 min" in on_host[1].summary
    of_shapes = seen({"gpu:0": 2**32}, _of_new_shapes)
    assert of_shapes is not None and of_shapes[0] <= 40.0 and of_shapes[1].subject == array_leaks.MANY
    process = seen({"host": 2**32}, _resident)
    assert process is not None and 60.0 < process[0] < 100.0 and "the host will be full in" in process[1].summary
    started = seen({"gpu:0": 2**32}, lambda number, **more: _growing(min(number, 4), **more))
    assert started is None, "parameters and buffers are made at the start"
    loads = seen({"gpu:0": 2**32}, lambda number, **more: _growing(number, calls={}, **more))
    assert loads is not None and loads[0] > 200.0, "nothing is called yet: it loads"


def test_a_leak_of_a_short_program_is_likely() -> None:
    """Each of its few samples shows it, in calls of a function; losses that are kept to the end are no leak."""

    def at_end(
        samples: Callable[..., Sample], count: int, *, last: Sample | None = None, **more: Any
    ) -> list[tuple[str, str, object]]:
        watching = Leaks()
        assert not [each for number in range(count) for each in watching.see(samples(number, **more))]
        found = [each for each, news in watching.at_end(last) if news]
        assert not [*watching.at_end(last)], "it is told once"
        assert all(each.summary.startswith("Likely: ") == bool(each.data.get("likely")) for each in found)
        assert all("as collected results" in each.advice for each in found if each.severity == "info")
        assert all(each.subject != array_leaks.MANY for each in found) or samples is _of_new_shapes
        return [(each.finding, each.severity, each.data.get("likely")) for each in found]

    def fast(number: int) -> Sample:
        return _growing(number, groups=[], resident=2**30 + number * 2**26)

    def starting(number: int) -> Sample:
        """The first of its samples also has the start, and what compiled then."""
        resident = 2**30 + number * 2**26 + min(number, 1) * 2**25
        return _growing(number, groups=[], resident=resident, compilations=lambda: [compilation(time=1.0)] * 2)

    def compiling(number: int, at: int) -> Sample:
        """The host memory is not known while something compiles."""
        resident = None if number == at else 2**28 + number * 2**27
        return _growing(number, groups=[], resident=resident)

    def loading(number: int) -> Sample:
        """JAX takes memory until the first calls; the samples are of a real program."""
        megabytes, calls = [(254, 0), (480, 39), (640, 1057), (800, 2023), (960, 2890)][number]
        return _growing(number, groups=[], resident=megabytes * 2**20, calls={"train": calls})

    def steady(number: int) -> Sample:
        return _growing(number, groups=[], resident=2**30 + number * 2**23)

    def small(number: int) -> Sample:
        return _growing(number, groups=[_group(10 * number, 4)])

    def once(number: int) -> Sample:
        return _growing(number, groups=[_group(10 * min(number, 1))])

    def found_later(number: int, last: int = 200, since: int = 2) -> Sample:
        """The loop was not known yet at the first sample, nor at any later one before a sample."""
        calls, count = {} if number < since else {"train": 200 * number}, last if number == 2 else 100 * number
        return _growing(number, calls=calls, groups=[_group(count)] if count else [])

    assert at_end(_growing, 4) == at_end(_growing, 8) == [("array_leak", "info", True)]
    assert at_end(_growing, 12) == [("array_leak", "warning", None)]
    assert at_end(fast, 4) == at_end(starting, 4) == [("host_memory_leak", "info", True)]
    assert at_end(compiling, 5, at=0) == at_end(compiling, 9, at=6) == [("host_memory_leak", "info", True)]
    assert at_end(loading, 5) == [("host_memory_leak", "info", True)]
    # What is still there after the end counts as grown, and what was freed at the end as grown until then.
    freed = _growing(4, groups=[])
    assert at_end(_growing, 2, last=_growing(2)) == at_end(_growing, 4, last=freed) == [("array_leak", "info", True)]
    assert at_end(steady, 5, last=_growing(5, groups=[], resident=2**31)) == [], "the end freed arrays"
    assert at_end(_of_new_shapes, 5) == [("array_leak", "info", True)]
    assert at_end(_growing, 2, last=freed) == at_end(_growing, 2, last=_growing(1)) == []
    for since in (1, 2):
        assert at_end(found_later, 2, last=found_later(2), since=since) == [("array_leak", "info", True)]
    assert at_end(found_later, 2, last=found_later(2, last=110)) == [], "it fills up"
    assert at_end(small, 4) == at_end(once, 4) == at_end(_growing, 2) == at_end(_growing, 4, calls={}) == []


def test_the_host_is_as_free_as_its_container(sample: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of a limit counts, where it is less than the free memory of the host."""
    jnp.zeros(1).block_until_ready()  # devices are sampled once JAX has some
    seen: list[Sample] = []
    monkeypatch.setattr(Leaks, "see", lambda self, each: seen.append(each) or ())
    monkeypatch.setattr(host, "memory", lambda _: {"available": 900, "limit": 700, "resident": 300, "total": 9999})
    sample()
    monkeypatch.setattr(host, "memory", lambda _: {})
    sample()
    assert [each.left.get("host") for each in seen] == [400, None]


def test_without_calls_it_is_told_by_the_minute() -> None:
    """Twice the samples are needed where nothing is known of steps and phases."""
    assert _findings([_growing(number, calls={}) for number in range(48)]) == []
    (leak,) = _findings([_growing(number, calls={}) for number in range(60)])
    assert leak.function == UNKNOWN and "120 per minute" in leak.summary


def test_it_is_told_again_when_it_has_doubled() -> None:
    """Not at each sample."""
    found = _findings([_growing(number) for number in range(200)])
    grown = [each.data["arrays"] for each in found]
    assert len({each.id for each in found}) == 1
    assert len(found) == 4
    assert all(after >= 2 * before for before, after in itertools.pairwise(grown))


def test_small_arrays_are_told_later() -> None:
    """Losses that are kept for an epoch are no harm."""
    samples = [Sample(time=5.0 * n, calls={"train": 10 * n}, groups=[_group(10 * n, 4, shape=())]) for n in range(80)]
    assert _findings(samples[:40]) == []
    (leak, *_) = _findings(samples)
    assert leak.subject == "float32[] on gpu:0"
    together = [dataclasses.replace(each, groups=[*each.groups, _group(10 * n)]) for n, each in enumerate(samples)]
    assert {each.subject for each in _findings(together)} == {"float32[512,512] on gpu:0"}, (
        "large ones are kept as well"
    )


def _resident(number: int, **more: Any) -> Sample:
    return Sample(time=5.0 * number, calls={"train": 10 * number}, resident=2**30 + number * 2**23, **more)


def test_host_memory_that_programs_take() -> None:
    """A few programs that were compiled meanwhile are shown beside it; where there are many, they are what grows."""
    few = [compilation(time=50.0 * number) for number in range(4)]
    (leak,) = _findings([_resident(number, compilations=lambda: few) for number in range(40)])
    assert leak.finding == host_leaks.NAME
    assert any("programs were compiled, which also" in each for each in leak.evidence)
    many = [compilation(time=5.0 * number) for number in range(40)]
    assert _findings([_resident(number, compilations=lambda: many) for number in range(40)]) == []


def test_one_leak_is_not_told_twice() -> None:
    """Arrays of the CPU backend lie in host memory, and so do programs; those of a GPU do not."""
    grown = [_group(10 * n, sharding="cpu:0", device="cpu:0") for n in range(60)]
    assert {each.finding for each in _findings([_resident(n, groups=[grown[n]]) for n in range(60)])} == {"array_leak"}
    found = _findings([_resident(n, executables=10 * n) for n in range(60)])
    assert {each.finding for each in found} == {"executable_leak"}
    found = _findings([_resident(n, groups=[_group(10 * n)]) for n in range(60)])
    assert {each.finding for each in found} == {"array_leak", "host_memory_leak"}


def test_very_many_groups_stay_cheap_and_bounded() -> None:
    """A sample of 2,000 kinds of arrays, all growing."""
    watching = Leaks()
    for number in range(30):
        groups = [_group(number + 1, shape=(each,)) for each in range(2000)]
        for finding, _ in watching.see(Sample(time=5.0 * number, calls={"train": 10 * number}, groups=groups)):
            json.dumps(dict(finding.data))
    assert sum(len(each._floors) for each in watching._kinds) <= leaks.MOST_FLOORS
    assert sum(len(each._cases) for each in watching._kinds) <= leaks.MOST_CASES
