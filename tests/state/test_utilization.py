"""MFU by hand, what stands in its way, loops that are found, and the table of peaks."""

import dataclasses
import itertools
import math
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.made_by_hand import compilation

import jaxobs
from jaxobs.base.config import Settings
from jaxobs.drivers import peaks
from jaxobs.facts.loops import LoopState
from jaxobs.facts.memory import DeviceState
from jaxobs.internals import executables
from jaxobs.internals.hlo import products as hlo_products
from jaxobs.loops import found_loops
from jaxobs.loops.found_loops import FEWEST_CALLS, MOST_FOUND, FoundLoops
from jaxobs.session import lifecycle
from jaxobs.state.loops import UNNAMED
from jaxobs.state.store import Store, current
from jaxobs.state.utilization import MOST_PROGRAMS, ProgramFlops, completed

pytestmark = pytest.mark.usefixtures("fresh")

SIDE = 64
PRODUCT = 2.0 * SIDE**3


def _text(fun: Any, *args: Any) -> tuple[str, float]:

    compiled = jax.jit(fun).lower(*args).compile()
    return compiled.as_text(), compiled.cost_analysis()["flops"]


@pytest.mark.parametrize("jit", [jaxobs.jit, jax.jit])
def test_mfu_is_flops_over_interval_and_peak(jit: Callable[..., Any]) -> None:
    """Two calls a step of a program of known products, one of them in a loop of five; evaluations do not count."""

    jaxobs.install(peak_flops=1e9, sample_interval=60)
    assert lifecycle._session is not None and lifecycle._session._sampler is not None
    lifecycle._session._sampler.stop()  # samples are taken below, and at no other time
    lifecycle._session.store.freshen = None

    @jit
    def train_step(x: Any) -> Any:
        return jax.lax.scan(lambda carry, _: (carry @ carry, None), x, None, length=5)[0]

    @jit
    def evaluate(x: Any) -> Any:
        return x @ x @ x

    x = jnp.eye(SIDE)
    for _ in range(30):
        with jaxobs.step("train"):
            train_step(train_step(x))
            time.sleep(0.005)
        evaluate(x)
    (waiting,) = jaxobs.snapshot().loops
    assert waiting.mfu is None and waiting.mfu_unknown is not None and "not read yet" in waiting.mfu_unknown
    for _ in range(3):  # programs are read one by one on the slow tick
        lifecycle._session.sample()
    (loop,) = jaxobs.snapshot().loops
    (name,) = loop.calls
    assert name.endswith("train_step") and loop.calls[name] == 2.0
    assert loop.flops == pytest.approx(2 * 5 * PRODUCT, rel=0.01)
    assert loop.mean_seconds is not None and loop.peak_flops == 1e9
    assert loop.mfu == pytest.approx(2 * 5 * PRODUCT / (loop.mean_seconds * 1e9), rel=0.01)
    assert loop.mfu_unknown is None


def test_a_program_that_only_moves_numbers_has_no_flops() -> None:
    """XLA leaves out what is 0."""
    compiled = jax.jit(lambda x: (x[:, 1:], x[:, :-1])).lower(jnp.eye(SIDE)).compile()
    flops, accessed = executables.cost(compiled.runtime_executable())
    assert flops == 0.0 and accessed is not None and accessed > 0


def test_no_figure_where_any_part_of_it_is_not_certain() -> None:
    state = LoopState(name="train", steps=50, ended=time.time(), mean_seconds=0.01, calls={"f": 1.0})
    device = DeviceState(device="gpu:0", id=0, platform="gpu", device_kind="NVIDIA H200", process_index=0)
    store, flops = Store(), ProgramFlops()
    event = store.record(compilation("f", time=5.0, flops=1e12))
    flops.see(event)

    def found(devices: Any = (device,), setting: float | None = None, state: LoopState = state, **more: Any) -> Any:
        functions = {each.name: each for each in store.snapshot(fresh=False).functions}
        return completed(state, functions, flops, devices, setting, **more)

    def why(*given: Any, **more: Any) -> str:
        told = found(*given, **more)
        assert (told.mfu is None) == (told.mfu_unknown is not None)
        assert told.mfu is None or told.mfu_range is None
        return told.mfu_unknown or f"{told.mfu:.4g}"

    assert "not read yet" in why()
    store.set_program("f", 5.0, all_flops=2e12)
    assert why() == f"{2e12 / (0.01 * 989.5e12):.4g}"
    assert why(setting=1e15) == "0.2"
    assert "peak of `cpu` is unknown" in why([dataclasses.replace(device, device_kind="cpu")])
    assert "several kinds: `NVIDIA H200`, `x`" in why([device, dataclasses.replace(device, device_kind="x")])
    assert why([]) == "No device is known yet."
    assert "several threads" in why(threads=2)
    assert why(state=dataclasses.replace(state, ended=time.time() - 100)) == "It has made no step recently."
    assert "No call of a jitted function" in why(state=dataclasses.replace(state, calls={}))
    assert "ahead of time" in why(state=dataclasses.replace(state, calls={"f": 1.0, UNNAMED: 0.5}))
    assert why(state=dataclasses.replace(state, calls={"g": 1.0})) == "No program of `g` was observed."
    flops.see(store.record(compilation("f", time=6.0, flops=9e12, transform="transpose")))
    assert why() == f"{2e12 / (0.01 * 989.5e12):.4g}"
    flops.see(store.record(compilation("f", time=6.0, flops=3e12)))
    store.set_program("f", 6.0, all_flops=3e12)
    assert "programs of 1e+12 to 3e+12 FLOP" in why()

    def between() -> Any:
        return found([device], 1e15, dataclasses.replace(state, calls={"f": 2.0})).mfu_range

    assert between() == (pytest.approx(2 * 1e12 / (0.01 * 1e15)), pytest.approx(2 * 3e12 / (0.01 * 1e15)))
    store.set_program("f", 6.0, all_flops=4e12)
    assert between() is None, "what the compiler left out of the other program is not known"
    store.set_program("f", 6.0, all_flops=3e12)
    for number in range(MOST_PROGRAMS):
        flops.see(compilation("f", time=10.0 + number, flops=1e12))
    assert f"more than {MOST_PROGRAMS} programs" in why()


def test_products_that_the_compiler_counts_once_are_counted_as_often_as_they_run() -> None:
    """Loops in loops, and batched products; loops without a product, as those of random numbers, add nothing."""

    x = jnp.eye(SIDE)

    def scanned(x: Any) -> Any:
        def outer(carry: Any, _: Any) -> Any:
            return jax.lax.scan(lambda c, _: (jnp.tanh(c @ c), None), carry, None, length=3)[0] @ x, None

        return jax.lax.scan(outer, x, None, length=7)[0]

    text, counted = _text(scanned, x)
    assert counted < 3 * PRODUCT
    assert hlo_products.left_out(text) == (7 * 3 + 7 - 2) * PRODUCT

    text, _ = _text(
        lambda x: jax.lax.fori_loop(0, 4, lambda _, c: jnp.einsum("bij,bjk->bik", c, c), x), jnp.stack([x] * 5)
    )
    assert hlo_products.left_out(text) == 3 * 5 * PRODUCT
    text, counted = _text(lambda x: x @ x + jax.random.normal(jax.random.key(0), x.shape), x)
    assert " while(" in text and hlo_products.left_out(text) == 0.0
    text, _ = _text(lambda x: jax.lax.while_loop(lambda c: c.sum() < 9.0, lambda c: c @ c, x), x)
    assert hlo_products.left_out(text) is None


def test_products_that_a_library_makes_are_counted_where_their_dimensions_are_told() -> None:
    """As XLA writes them for NVIDIA's libraries; of a kernel that does not say what it computes nothing is known."""
    entry = """HloModule jit_f

ENTRY %main (a: f32[8,16], b: f32[16,4]) -> f32[8,4] {
  %a = f32[8,16]{1,0} parameter(0)
  %b = f32[16,4]{1,0} parameter(1)
  %gemm = (f32[8,4]{1,0}, s8[64]{0}) custom-call(%a, %b), custom_call_target="TARGET"CONFIG
  ROOT %out = f32[8,4]{1,0} get-tuple-element(%gemm), index=0
}
"""
    config = ', backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}}'

    def of(target: str, config: str = config) -> float | None:
        return hlo_products.left_out(entry.replace("TARGET", target).replace("CONFIG", config))

    assert of("__cublas$gemm") == of("__cublas$lt$matmul") == 2 * 8 * 4 * 16
    assert of("__cublas$gemm", "") is None
    assert of("__cudnn$fmhaSoftmax") is None
    assert of("TopK", "") == 0.0
    assert hlo_products.left_out("no program") is None


def test_flops_are_those_of_one_device_of_a_sharded_program() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
    placed = jax.device_put(
        jnp.ones((8 * SIDE, SIDE)), jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    )
    text, counted = _text(lambda x, w: x @ w, placed, jnp.eye(SIDE))
    assert counted == pytest.approx(PRODUCT, rel=0.01)
    assert hlo_products.left_out(text) == 0.0


def test_functions_that_are_called_again_and_again_are_found_as_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(found_loops, "perf_counter", lambda: now)
    found = FoundLoops()

    def count(seconds: float, **calls: int) -> dict[str, LoopState]:
        nonlocal now
        now += seconds
        found.count(calls)
        return {each.name: each for each in found.frozen()}

    count(0.0, train=0, rare=0)
    assert count(5.0, train=10, rare=1) == {}
    assert count(0.1, train=11, rare=1) == {}
    assert count(4.9, train=60, rare=2)["train"].mean_seconds == pytest.approx(0.1)
    assert count(5.0, train=60, rare=2)["train"].steps == 60
    assert count(5.0, train=70, rare=2)["train"].mean_seconds == pytest.approx(0.1)
    assert count(5.0, train=95, rare=2)["train"].mean_seconds == pytest.approx(10 / 75)
    state = count(5.0, train=145, rare=FEWEST_CALLS - 1)["train"]
    assert state.found and state.calls == {"train": 1.0} and state.seconds is None and state.p50_seconds is None
    assert state.steps_per_second == pytest.approx(125 / 15) and state.recent == pytest.approx((0.1, 0.2, 0.1))
    assert [(mean, longest) for _, mean, longest in state.history] == [(0.1, 0.1), (0.2, 0.2), (0.1, 0.1)]
    for turn in (1, 2, 3):
        many = count(5.0, **{f"f{number}": turn * 100 for number in range(20)})
    assert len(many) == MOST_FOUND


def test_a_loop_is_found_under_way_and_gives_way_to_one_that_is_told_of() -> None:
    """By the calls of `jaxobs.jit`, through the source; with an explicit scope it is gone."""

    jaxobs.install(sample_interval=0.45)

    @jaxobs.jit(name="train")
    def train(x: Any) -> Any:
        return x + 1

    x, began = jnp.ones(()), list[float]()
    while not any(each.steps > 20 for each in jaxobs.snapshot().loops):
        for _ in range(10):
            began.append(time.perf_counter())
            train(x)
            time.sleep(0.01)
    (loop,) = jaxobs.snapshot().loops
    turns = [after - before for before, after in itertools.pairwise(began)]
    assert loop.found and loop.name == "train" and loop.mean_seconds is not None
    assert min(turns) <= loop.mean_seconds <= max(turns)  # of some of them
    with jaxobs.step("told"):
        train(x)
    assert [(each.name, each.found) for each in jaxobs.snapshot().loops] == [("told", False)]


def test_peaks_name_their_source_and_what_is_not_in_the_table_has_none() -> None:
    assert peaks.peak_flops("NVIDIA H200") == 989.5e12
    assert peaks.peak_flops("Tesla V100-SXM2-16GB") == 125e12
    assert peaks.peak_flops("TPU v5 lite") == 197e12
    for unknown in ("cpu", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA H300"):
        assert peaks.peak_flops(unknown) is None
    for kind, peak in peaks.PEAKS.items():
        assert ("NVIDIA" in peak.source) != ("Google" in peak.source), kind
        assert all(20e12 < flops < 1e16 and math.isfinite(flops) for flops in peak.flops.values()), kind
        assert peaks.peak_flops(kind) is not None


def test_the_setting_overrides_the_table() -> None:
    current().configure(Settings(peak_flops=5e12))
    with jaxobs.step("train"):
        pass
    (loop,) = current().snapshot(fresh=False).loops
    assert loop.peak_flops == 5e12
