"""Time added up, of traces made by hand."""

import pytest
from helpers import xplanes
from helpers.xplanes import event, operation

from jaxobs.facts.profiles import CollectiveTime, FunctionTime, Profile
from jaxobs.internals.xplane import space
from jaxobs.internals.xplane.space import Event, Plane, Space
from jaxobs.profiles.analysis import analyse
from jaxobs.profiles.tracks import trace_of, wanted

US = 1000.0


def profiled(*planes: Plane) -> Profile:
    return analyse(trace_of(space.read(xplanes.space(Space(planes)), wanted))).profile


def seconds(profile: Profile) -> dict[str, float]:
    return {each.operation: round(each.device_seconds * 1e6, 3) for each in profile.operations}


def test_an_operation_that_runs_others_has_only_what_they_leave() -> None:
    """A loop with its body: nothing counts twice."""
    spans = {"while.1": (0, 10), "dot.2": (1, 4), "add.3": (5, 9)}
    profile = profiled(
        xplanes.host(worker=[operation(name, start * US, end * US) for name, (start, end) in spans.items()])
    )
    assert seconds(profile) == {"while.1": 3.0, "dot.2": 3.0, "add.3": 4.0}
    assert [each.busy_seconds for each in profile.devices] == [pytest.approx(10e-6)]
    assert profile.functions == (FunctionTime(function="f", device_seconds=pytest.approx(10e-6), calls=1),)
    assert sum(each.share for each in profile.operations) == pytest.approx(1)


def test_a_loop_that_waits_for_another_thread_has_no_time_of_its_own() -> None:
    """A CPU runs the body of a loop on any thread of its pool."""
    profile = profiled(xplanes.host(one=[operation("while.1", 0, 10 * US)], two=[operation("dot.2", 1 * US, 9 * US)]))
    assert seconds(profile) == {"while.1": 2.0, "dot.2": 8.0}


def test_threads_work_for_one_device_after_another() -> None:
    profile = profiled(
        xplanes.host(
            one=[operation("dot.2", 0, 4 * US, device=0), operation("dot.2", 4 * US, 10 * US, device=1)],
            two=[operation("add.3", 2 * US, 5 * US, device=0, run=2)],
        )
    )
    assert {each.device: round(each.busy_seconds * 1e6, 3) for each in profile.devices} == {"cpu:0": 5.0, "cpu:1": 6.0}
    assert {each.device: round(each.busy_ratio, 3) for each in profile.devices} == {"cpu:0": 0.5, "cpu:1": 0.6}
    assert [(each.operation, each.count) for each in profile.operations] == [("dot.2", 2), ("add.3", 1)]
    assert profile.functions[0].calls == 2


def test_an_exchange_is_exposed_while_nothing_else_runs_on_the_device() -> None:
    """On a stream of its own it may be hidden behind what computes."""
    nccl = event("ncclDevKernel", 4 * US, 10 * US, hlo_op="all-reduce-start.1", hlo_module="jit_f")
    gemm = event("gemm", 0, 6 * US, hlo_op="dot.1", hlo_module="jit_f")
    profile = profiled(xplanes.device("GPU:3", {"Stream #1(compute)": [gemm], "Stream #2(nccl)": [nccl]}))
    assert [each.device for each in profile.devices] == ["gpu:3"]
    assert profile.collectives == CollectiveTime(seconds=pytest.approx(6e-6), exposed_seconds=pytest.approx(4e-6))
    assert {each.operation: each.category for each in profile.operations} == {
        "dot.1": "matmul", "all-reduce-start.1": "collective",
    }  # fmt: skip


def test_what_a_backend_does_not_report_is_absent() -> None:
    profile = profiled(xplanes.device("GPU:0", {"Stream #1": [event("some_kernel", 0, US)]}))
    [only] = profile.operations
    assert (only.operation, only.function, only.scope, only.source) == ("some_kernel", None, None, None)
    assert (only.flops, only.bytes, only.bound, only.category) == (None, None, "unknown", "other")
    assert profile.steps is None
    assert profile.functions == ()
    assert profiled(xplanes.host(python=[event("nothing", 0, US)])).collectives is None


FUSION = "%fusion.3 = bf16[8,8]{1,0} fusion(bf16[8,8]{1,0} %p.1), kind=kOutput"


def tpu(modules: list[Event], operations: list[Event]) -> Profile:
    """Returns the profile of a TPU v4: 275 TFLOP/s and 1,228 GB/s."""
    lines = {"XLA Modules": modules, "XLA Ops": operations, "Steps": []}
    peaks = {"peak_teraflops_per_second": 275.0, "peak_hbm_bw_gigabytes_per_second": 1228.0}
    return profiled(xplanes.device("TPU:0", lines, device_type_string="TPU v4", **peaks))


def test_a_tpu_reports_costs_itself() -> None:
    """Names by the instruction's text, programs by the line of modules, costs with the name."""
    told = {
        "hlo_category": "convolution fusion", "flops": 2_000_000_000, "bytes_accessed": 1000,
        "tf_op": "jit(train_step)/layer1/dot_general:", "source": "train.py:3",
    }  # fmt: skip
    runs = ((0, 10, 5), (12, 20, 6))
    profile = tpu(
        [event("jit_train_step(77)", start * US, end * US, run_id=run) for start, end, run in runs],
        [event(FUSION, 1 * US, 9 * US, **told), event(FUSION, 13 * US, 18 * US, **told)],
    )
    [only] = profile.operations
    assert (only.operation, only.function, only.category, only.count) == ("fusion.3", "train_step", "matmul", 2)
    assert (only.scope, only.source) == ("jit(train_step)/layer1/dot_general", "train.py:3")
    assert (only.flops, only.bytes, only.bound) == (4e9, 2000.0, "compute")
    assert only.roofline_ratio == 1.0, "it cannot be more"
    assert profile.functions[0].calls == 2


def kernel(flops: int, moved: int, microseconds: float, hint: str = "convolution fusion") -> float | None:
    """Returns how much of its time an operation would take at the TPU's peaks."""
    told = {"hlo_category": hint, "flops": flops, "bytes_accessed": moved, "tf_op": "jit(f)/dot_general:"}
    return tpu(
        [event("jit_f(7)", 0, 900 * US, run_id=5)], [event(FUSION, 0, microseconds * US, **told)]
    ).operations[0].roofline_ratio  # fmt: skip


def test_how_far_an_operation_is_from_the_roofline() -> None:
    """By its FLOPs or by its bytes, whichever takes longer; what is no product is limited by its bytes."""
    assert kernel(275_000_000, 1000, 100.0) == pytest.approx(0.01)
    assert kernel(275_000_000, 122_800_000, 400.0) == pytest.approx(0.25)
    assert kernel(275_000_000, 12_280_000, 100.0, "loop fusion") == pytest.approx(0.1)
    assert kernel(275_000_000, 12_280_000, 100.0, "custom-call") is None
