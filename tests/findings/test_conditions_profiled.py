"""Findings in samples of the profiler, which are made by hand."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from helpers.condition_scenes import found
from helpers.made_by_hand import profile_sample

from jaxobs.facts.findings import Finding
from jaxobs.facts.loops import LoopState
from jaxobs.facts.profile_samples import HostPlace, ProfileSample, ProfileState, SampledFunction
from jaxobs.facts.profiles import IdleTime, OperationTime
from jaxobs.state.parts import ProfileSamples


def profile(*samples: ProfileSample) -> ProfileState:
    return ProfileState(
        samples=len(samples), window_seconds=sum(each.window_seconds for each in samples), device_seconds={},
        exposed_seconds={}, busy={}, latest=samples,
    )  # fmt: skip


def sampled(reason: str = "input", share: float = 0.5, **more: Any) -> ProfileSample:
    """A sample of two devices, that were idle for this share of their time."""
    known: dict[str, Any] = {
        "idle": (IdleTime(reason=reason, seconds=0.2 * share),), "operations": (), "collective_seconds": 0.0,
        "exposed_seconds": 0.0, "places": (HostPlace(where="train.py:30", reason=reason, share=share),),
    }  # fmt: skip
    return profile_sample(**(known | more))


LOOP = LoopState(name="train", steps=1000, mean_seconds=0.025)


@pytest.mark.parametrize(
    ("reason", "because", "todo"),
    [
        ("input", "the program waits for its input", "prefetch"),
        ("dispatch", "the host is late with the next program", "between two steps"),
        ("transfer", "arrays move between host and devices", "from step to step"),
        ("garbage_collection", "Python collects garbage", "gc.freeze"),
    ],
)
def test_devices_that_are_idle_because_of_the_host(reason: str, because: str, todo: str) -> None:
    (finding,) = found(loops=(LOOP,), profile=profile(*[sampled(reason)] * 5))
    assert (finding.finding, finding.subject, finding.where) == ("idle_devices", reason, "train.py:30")
    assert finding.summary == f"The devices are idle 50% of the time in the steps of `train`, because {because}."
    assert todo in finding.advice
    assert finding.seconds == pytest.approx(12.5)
    assert "100% of the looks" in finding.evidence[1]


def test_devices_that_are_idle_for_no_fault_of_the_host() -> None:
    """Neither is too little idle time, in too few samples, only in one of many, or without a loop."""
    for each in ("unknown", "waiting", "compile", "checkpoint"):
        assert found(loops=(LOOP,), profile=profile(*[sampled(each)] * 5)) == []
    assert found(loops=(LOOP,), profile=profile(*[sampled(share=0.2)] * 5)) == []
    assert found(loops=(LOOP,), profile=profile(*[sampled()] * 4)) == []
    assert found(loops=(LOOP,), profile=profile(sampled(), *[sampled(share=0.0)] * 4)) == []
    assert found(loops=(LOOP,), profile=profile(*[sampled(loop=None)] * 5)) == []
    assert found(loops=(LOOP,), profile=profile(*[sampled(loop="eval")] * 2, *[sampled()] * 4)) == []
    assert found(loops=(LOOP,), profile=profile(*[sampled(busy={"gpu:0": 0.0, "gpu:1": 0.0})] * 5)) == []
    assert found(loops=(LOOP,), profile=profile(*[sampled(looks=4)] * 5)) == [], "the machine was too busy to look"
    few = dataclasses.replace(LOOP, steps=10)
    assert found(loops=(few,), profile=profile(*[sampled()] * 5)) == []


def test_devices_that_wait_for_each_other() -> None:
    exchange = OperationTime(
        operation="all-reduce.1", function="train.step", category="collective", scope="jit(step)/psum",
        source="train.py:20", device_seconds=0.08, share=0.8, count=8, flops=None, bytes=None, bound="unknown",
    )  # fmt: skip
    waits = sampled(share=0.0, exposed_seconds=0.1, operations=(exchange,))
    (finding,) = found(loops=(LOOP,), profile=profile(*[waits] * 5))
    assert (finding.finding, finding.where) == ("exposed_collectives", "train.py:20")
    assert "50% of the time" in finding.summary
    assert "all-reduce.1" in finding.evidence[1]
    on_cpu = dataclasses.replace(waits, busy={"cpu:0": 0.5, "cpu:1": 0.5})
    assert found(loops=(LOOP,), profile=profile(*[on_cpu] * 5)) == []
    little = dataclasses.replace(waits, exposed_seconds=0.04)
    assert found(loops=(LOOP,), profile=profile(*[little] * 5)) == []


def computed(step: float, number: int, **seconds: float) -> ProfileSample:
    """A sample of one device for 0.1 s, in steps that take so long, with seconds of a step by kind of operation."""
    scale = 0.1 / step
    function = SampledFunction(function="train.step", seconds={name: each * scale for name, each in seconds.items()})
    operations = tuple(
        OperationTime(
            operation=f"{name}.1", function="train.step", category=name, scope=f"jit(step)/{name}",
            source="train.py:12", device_seconds=each * scale, share=each / sum(seconds.values()), count=1,
            flops=None, bytes=None, bound="unknown",
        )
        for name, each in seconds.items()
    )  # fmt: skip
    idle = max(0.0, 0.1 - scale * sum(seconds.values()))
    return profile_sample(
        time=3.0 + 60 * number, busy={"gpu:0": 1 - idle / 0.1}, functions=(function,), operations=operations,
        idle=(IdleTime(reason="dispatch", seconds=idle),) if idle else (), step_seconds=step, exposed_seconds=0.0,
        places=(HostPlace(where="train.py:30", reason="dispatch", share=idle / 0.1),),
    )  # fmt: skip


def regressed(after: Callable[[int], ProfileSample], count: int = 8) -> list[Finding]:
    """Findings where steps took 20 ms at first, three quarters of that in products, and then `after`."""
    samples = ProfileSamples()
    for number in range(8):
        samples.take(computed(0.020 + 0.0001 * number, number, matmul=0.015, copy=0.005))
    for number in range(8, 8 + count):
        samples.take(after(number))
    return found(loops=(LOOP,), profile=samples.frozen())


def test_a_step_that_takes_longer_than_at_first() -> None:
    """With the operations that do, and their line; or with the reason for which the devices are idle."""
    (finding,) = regressed(lambda n: computed(0.030, n, matmul=0.024, copy=0.006))
    assert (finding.finding, finding.where) == ("step_time_regression", "train.py:12")
    assert "takes 30 ms, and took 20.4 ms at first" in finding.summary
    assert "kind `matmul` in `train.step` take longer, most of all `jit(step)/matmul`" in finding.summary
    assert finding.seconds == pytest.approx(7 * 60 * 0.00965 / 0.030)
    assert finding.evidence[0] == "`matmul` in `train.step`: 24 ms of a step, 15 ms at first."
    (finding,) = regressed(lambda n: computed(0.026, n, matmul=0.015, copy=0.005))
    assert "idle for longer, with the reason `dispatch`" in finding.summary and finding.where == "train.py:30"
    (finding,) = regressed(lambda n: computed(0.030, n, matmul=0.019, copy=0.0085, reduce=0.0025))
    assert "no single part" in finding.summary and finding.where is None


def test_steps_that_vary_do_not_take_longer() -> None:
    times = {12: 0.0205}
    assert regressed(lambda n: computed(times.get(n, 0.030), n, matmul=times.get(n, 0.030))) == []
    assert regressed(lambda n: computed(0.024, n, matmul=0.019, copy=0.005)) == []
    assert regressed(lambda n: computed(0.030, n, matmul=0.025), count=7) == []
    assert regressed(lambda n: computed(0.010, n, matmul=0.0075, copy=0.0025)) == []


def test_on_a_cpu_the_rest_of_the_step_shows_that_no_other_program_took_its_cores() -> None:
    """The whole step takes as long as at first, while one part takes longer."""

    def step(seconds: float, **parts: float) -> list[Finding]:
        return regressed(lambda n: dataclasses.replace(computed(seconds, n, **parts), busy={"cpu:0": 1.0}))

    (finding,) = step(0.030, matmul=0.025, copy=0.005)
    assert (finding.finding, finding.where) == ("step_time_regression", "train.py:12")
    (finding,) = step(0.026, matmul=0.015, copy=0.005)
    assert "idle for longer" in finding.summary
    assert step(0.030, matmul=0.022, copy=0.008) == [], "both take longer: the CPU is slower"
    assert step(0.030, matmul=0.024, copy=0.006) == []


def test_devices_that_copy_more_than_they_compute() -> None:
    """With the largest copy and its line; not where it is a usual part of the work."""
    (finding,) = found(loops=(LOOP,), profile=profile(*[computed(0.02, n, matmul=0.01, copy=0.01) for n in range(5)]))
    assert (finding.finding, finding.where) == ("copies_in_step", "train.py:12")
    assert finding.summary.endswith("is copying and moving arrays.") and "`jit(step)/copy`" in finding.evidence[1]
    assert finding.seconds == pytest.approx(0.5 * 0.025 * 1000)
    few = [computed(0.02, n, matmul=0.015, copy=0.005) for n in range(5)]
    assert found(loops=(LOOP,), profile=profile(*few)) == []


def busy(
    number: int = 0, ratio: float | None = None, bound: str = "memory", share: float = 0.8, **more: Any
) -> ProfileSample:
    """A sample of two devices with one operation that takes most, of a product."""
    top = OperationTime(
        operation="fusion.1", function="train.step", category="matmul", scope="jit(step)/scan/dot_general",
        source="train.py:14", device_seconds=0.2 * share, share=share, count=8, flops=1e6, bytes=1e6, bound=bound,
        dtype="f64", roofline_ratio=ratio, replicated=bool(more.get("replicated_seconds")),
        widened=bool(more.get("widened_seconds")),
    )  # fmt: skip
    function = SampledFunction(function="train.step", seconds={"matmul": 0.2}, **more)
    return profile_sample(
        time=float(number), busy={"gpu:0": 1.0, "gpu:1": 1.0}, functions=(function,), operations=(top,), idle=(),
        places=(), exposed_seconds=0.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("field", "name", "says"),
    [
        ("replicated_seconds", "replicated_operations", "products that every device computes in full"),
        ("widened_seconds", "float64_operations", "is in float64"),
    ],
)
def test_work_that_need_not_be(field: str, name: str, says: str) -> None:
    """With its share, its line and what it costs; not where it is little, or where nobody knows."""
    (finding,) = found(loops=(LOOP,), profile=profile(*[busy(n, **{field: 0.1}) for n in range(5)]))
    assert (finding.finding, finding.where) == (name, "train.py:14")
    assert finding.summary.startswith("In the steps of `train`, 50% of the devices' work is")
    assert says in finding.summary
    assert finding.seconds == pytest.approx(0.5 * 0.025 * 1000)
    assert finding.evidence[1] == "`jit(step)/scan/dot_general` at train.py:14: 80% of the devices' work."
    for seconds in (0.04, 0.0, None):
        assert found(loops=(LOOP,), profile=profile(*[busy(n, **{field: seconds}) for n in range(5)])) == []
    few = dataclasses.replace(LOOP, steps=10)
    assert found(loops=(few,), profile=profile(*[busy(n, **{field: 0.1}) for n in range(5)])) == []


def test_an_operation_far_from_the_roofline() -> None:
    """With what limits it; not one that is near, or that is one of many, or of a device without a data sheet."""
    for bound, todo in (("memory", "reads memory"), ("compute", "matrix units")):
        (finding,) = found(loops=(LOOP,), profile=profile(*[busy(n, 0.1, bound) for n in range(5)]))
        assert (finding.finding, finding.where, finding.data["ratio"]) == ("far_from_roofline", "train.py:14", 0.1)
        assert "takes 80% of the devices' work, at 10% of what the device could do" in finding.summary
        assert todo in finding.advice
        assert finding.seconds == pytest.approx(0.8 * 0.9 * 0.025 * 1000)
    for ratio, share in ((0.3, 0.8), (0.1, 0.4), (None, 0.8)):
        assert found(loops=(LOOP,), profile=profile(*[busy(n, ratio, share=share) for n in range(5)])) == []
