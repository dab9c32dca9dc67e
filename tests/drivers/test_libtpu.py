"""TPUs as libtpu sees them, against a package `libtpu` that answers as it is told."""

import pathlib
import threading
from typing import Any

import pytest
from helpers.accelerator_watch import Watch
from helpers.answering import Request, serving
from helpers.fake_libtpu import FakeLibtpu
from helpers.run_programs import run

from jaxobs.base import guard
from jaxobs.base.config import Settings
from jaxobs.drivers import tpu_monitoring
from jaxobs.facts.accelerators import AcceleratorState
from jaxobs.sources import libtpu as libtpu_source
from jaxobs.sources.libtpu import TpuMonitoring
from jaxobs.testing import FakeClient, FakeDevice
from tools.ports import free_port

pytestmark = pytest.mark.usefixtures("fresh")

GIB = 2**30
LINKS = [f"tray1.chip{chip}.ici{link}.int: {10 if (chip, link) == (1, 3) else 0}" for chip in (0, 1) for link in (2, 3)]
ALL: dict[str, Any] = {
    "duty_cycle_pct": ["87.50", "0.00"], "tensorcore_util": ["34.25", "0.00"], "hbm_util": ["55.00", "1.00"],
    "hbm_capacity_usage": [str(GIB), "0"], "hbm_capacity_total": [str(32 * GIB)] * 2,
    "tpu_throttle_score": ["0-0", "1-3"], "ici_link_health": LINKS,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine answers late, and no answer keeps the next sample away; nobody asks for metadata."""
    monkeypatch.setenv("TPU_SKIP_MDS_QUERY", "1")
    monkeypatch.setattr(libtpu_source, "WAIT_SECONDS", 5.0)
    monkeypatch.setattr(libtpu_source, "PAUSE", 0)


def _tpus(count: int, cores: int = 1) -> FakeClient:
    """Makes so many devices, of which so many are the cores of one chip; the last first."""
    devices = [
        FakeDevice(
            10 + i, platform="tpu", device_kind="TPU fake", local_hardware_id=i // cores,
            coords=(i // cores, 0, 0), core_on_chip=i % cores,
        )
        for i in reversed(range(count))
    ]  # fmt: skip
    return FakeClient(devices, platform="tpu")


@pytest.mark.parametrize("module", ["tpumonitoring", "monitoring"])
def test_every_figure_in_base_units(module: str) -> None:
    """Percents and scores become ratios; each value goes to the device of its place; the first releases too."""
    watch = Watch(TpuMonitoring, _tpus(2))
    with FakeLibtpu(module=module, **ALL):
        watch.sample()
    found = watch.metrics()
    assert {labels[1:] for labels in found if labels[0] == "accelerator_info"} == {
        (device, "", "TPU fake", "", "0.0.51", "") for device in ("tpu:10", "tpu:11")
    }
    assert {name: value for name, value in found.items() if name[0] != "accelerator_info"} == {
        ("accelerator_up", "tpu:10"): 1.0, ("accelerator_up", "tpu:11"): 1.0,
        ("accelerator_utilization_ratio", "tpu:10"): 0.875, ("accelerator_utilization_ratio", "tpu:11"): 0.0,
        ("accelerator_tensorcore_utilization_ratio", "tpu:10"): 0.3425,
        ("accelerator_tensorcore_utilization_ratio", "tpu:11"): 0.0,
        ("accelerator_memory_bandwidth_utilization_ratio", "tpu:10"): 0.55,
        ("accelerator_memory_bandwidth_utilization_ratio", "tpu:11"): 0.01,
        ("accelerator_memory_used_bytes", "tpu:10"): GIB, ("accelerator_memory_used_bytes", "tpu:11"): 0,
        ("accelerator_memory_total_bytes", "tpu:10"): 32 * GIB, ("accelerator_memory_total_bytes", "tpu:11"): 32 * GIB,
        ("accelerator_slowdown_ratio", "tpu:10"): 0.0, ("accelerator_slowdown_ratio", "tpu:11"): 0.3,
        ("accelerator_link_fault_level", "tpu:10", "tray1.chip0.ici2.int"): 0,
        ("accelerator_link_fault_level", "tpu:10", "tray1.chip0.ici3.int"): 0,
        ("accelerator_link_fault_level", "tpu:11", "tray1.chip1.ici2.int"): 0,
        ("accelerator_link_fault_level", "tpu:11", "tray1.chip1.ici3.int"): 10,
    }  # fmt: skip
    assert watch.store.snapshot().observer.capabilities == {"libtpu": True}


def test_what_is_empty_or_no_number_is_absent() -> None:
    watch = Watch(TpuMonitoring, _tpus(2))
    nonsense = ["", "n/a", "nan", "inf", "-1", "0-", "tray1"]
    for metrics in ({}, {name: each for name in ALL for each in ([text] * 2 for text in nonsense)}):
        with FakeLibtpu(**metrics):
            watch.sample()
        assert {name[0] for name in watch.metrics()} == {"accelerator_info", "accelerator_up"}
    assert guard.internal_errors() == {}


def test_a_chip_with_two_devices() -> None:
    """Each core has its chip's duty cycle and its own matrix units; bytes of the whole chip are told of neither."""
    watch = Watch(TpuMonitoring, _tpus(4, cores=2))
    with FakeLibtpu(**(ALL | {"tensorcore_util": ["10.00", "20.00", "30.00", "40.00"]})):
        states = watch.sample()
    assert [states[f"tpu:{id}"].utilization for id in range(10, 14)] == [0.875, 0.875, 0.0, 0.0]
    assert [states[f"tpu:{id}"].tensorcore_utilization for id in range(10, 14)] == [0.1, 0.2, 0.3, 0.4]
    assert [states[f"tpu:{id}"].slowdown for id in range(10, 14)] == [0.0, 0.0, 0.3, 0.3]
    assert {state.memory_used_bytes for state in states.values()} == {None}
    assert [len(states[f"tpu:{id}"].link_faults) for id in range(10, 14)] == [2, 0, 2, 0]


def test_a_device_of_two_cores() -> None:
    """The device has the cores' mean: it did half of what it could."""
    watch = Watch(TpuMonitoring, _tpus(2))
    with FakeLibtpu(tensorcore_util=["100.00", "0.00", "20.00", "40.00"]):
        states = watch.sample()
    assert [states[f"tpu:{id}"].tensorcore_utilization for id in (10, 11)] == [0.5, pytest.approx(0.3)]


def test_lists_that_do_not_fit_the_devices_are_left_out() -> None:
    """Eight chips of the host, of which JAX has two: nobody can tell which."""
    watch = Watch(TpuMonitoring, _tpus(2))
    for count in (1, 3, 8):
        metrics = {name: ["1"] * count for name in ALL if name not in ("tensorcore_util", "ici_link_health")}
        links = [f"tray1.chip{chip}.ici0.int: 1" for chip in range(count)]
        with FakeLibtpu(**metrics, tensorcore_util=["1"] * (2 * count + 1), ici_link_health=links):
            watch.sample()
        assert {name[0] for name in watch.metrics()} == {"accelerator_info", "accelerator_up"}


def test_links_are_bounded_and_in_the_order_of_their_numbers() -> None:
    """Chip 10 comes after chip 2; a wild list of links makes no wild number of series."""
    devices = [tpu_monitoring.TpuDevice(f"tpu:{i}", "TPU", i, (i, 0)) for i in range(3)]
    links = [f"tray1.chip{chip}.ici{link}.ext: {chip % 10}" for chip in (10, 2, 1) for link in range(80)]
    states = tpu_monitoring.states(devices, {"ici_link_health": links}, None)
    assert [set(state.link_faults.values()) for state in states] == [{1}, {2}, {0}]
    assert max(len(state.link_faults) for state in states) <= tpu_monitoring.MOST_LINKS


def test_other_drivers_keep_their_devices() -> None:
    watch = Watch(TpuMonitoring, _tpus(1))
    gpu = AcceleratorState(time=1.0, device="gpu:0", uuid="GPU-a", index=0)
    watch.store.set_accelerators((gpu,))
    with FakeLibtpu():
        assert set(watch.sample()) == {"gpu:0", "tpu:10"}
    watch.store.set_accelerators(())
    assert {state.device for state in watch.store.snapshot().accelerators} == {"tpu:10"}


def test_a_question_that_fails_takes_only_its_own_figure() -> None:
    watch = Watch(TpuMonitoring, _tpus(2))
    with FakeLibtpu(**ALL) as libtpu:
        libtpu.metrics["duty_cycle_pct"] = RuntimeError("UNAVAILABLE")
        state = watch.sample()["tpu:10"]
        assert (state.up, state.utilization, state.tensorcore_utilization) == (True, None, 0.3425)
        libtpu.metrics["duty_cycle_pct"] = ["1", "2"]
        assert watch.sample()["tpu:10"].utilization == 0.01
    assert guard.internal_errors() == {}


def test_where_every_question_fails_the_devices_are_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libtpu_source, "HANG_SECONDS", 0.0)
    watch = Watch(TpuMonitoring, _tpus(2))
    with FakeLibtpu(**dict.fromkeys(ALL, RuntimeError("the driver is gone"))) as libtpu:
        state = watch.sample()["tpu:10"]
        assert (state.up, state.utilization) == (False, None)
        assert "RuntimeError: the driver is gone" in (state.trouble or "")
        assert watch.metrics()["accelerator_up", "tpu:10"] == 0
        libtpu.metrics.update(ALL)
        assert watch.sample()["tpu:10"].utilization == 0.875


def test_a_call_that_hangs_keeps_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tick goes on without it, it is asked once and not again, and after a while it is told of as hanging."""
    monkeypatch.setattr(libtpu_source, "WAIT_SECONDS", 0.1)
    monkeypatch.setattr(libtpu_source, "SLOW_SECONDS", 60.0)
    watch, go_on = Watch(TpuMonitoring, _tpus(2)), threading.Event()

    def hang() -> list[str]:
        go_on.wait()
        return ["1", "2"]

    try:
        with FakeLibtpu(duty_cycle_pct=hang):
            assert watch.sample() == {}
            monkeypatch.setattr(libtpu_source, "HANG_SECONDS", 0.0)
            for _ in range(3):
                states = watch.sample()
            assert [each.name for each in threading.enumerate()].count("jaxobs-libtpu") == 1
            assert {(state.up, "has not answered" in (state.trouble or "")) for state in states.values()} == {
                (False, True)
            }
    finally:
        go_on.set()
    monkeypatch.setattr(libtpu_source, "WAIT_SECONDS", 5.0)
    assert watch.sample()["tpu:10"].utilization == 0.01


def test_a_slow_reading_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """libtpu holds the interpreter while it answers: the program is not stopped a second time."""
    monkeypatch.setattr(libtpu_source, "SLOW_SECONDS", -1.0)
    watch = Watch(TpuMonitoring, _tpus(2))
    with FakeLibtpu(**ALL) as libtpu:
        for _ in range(3):
            assert watch.sample() == {}
        assert len(libtpu.asked) == len(tpu_monitoring.METRICS)
    (note,) = watch.store.snapshot().observer.notes
    assert "does not query it again" in note and "TPU_SKIP_MDS_QUERY=1" in note


def test_a_reading_is_paid_for_with_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libtpu_source, "PAUSE", 1e9)
    watch = Watch(TpuMonitoring, _tpus(2))
    with FakeLibtpu(**ALL) as libtpu:
        watch.sample()
        libtpu.metrics["duty_cycle_pct"] = ["1", "2"]
        assert watch.sample()["tpu:10"].utilization == 0.875
        assert len(libtpu.asked) == len(tpu_monitoring.METRICS)


@pytest.mark.parametrize(
    ("libtpu", "reason"),
    [
        (None, "`import libtpu`: "),
        (FakeLibtpu(module=None, version="0.0.9"), "libtpu 0.0.9 has no `sdk.tpumonitoring`"),
    ],
)
def test_what_is_missing_is_said_once(libtpu: FakeLibtpu | None, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(TpuMonitoring, _tpus(2))
    if libtpu is None:
        monkeypatch.setitem(__import__("sys").modules, "libtpu", None)
        assert [watch.sample() for _ in range(3)] == [{}, {}, {}]
    else:
        with libtpu:
            assert [watch.sample() for _ in range(3)] == [{}, {}, {}]
    observer = watch.store.snapshot().observer
    assert observer.capabilities == {"libtpu": False}
    (note,) = observer.notes
    assert reason in note
    assert guard.internal_errors() == {}


@pytest.mark.parametrize("status", [200, 403, None])
def test_libtpu_is_not_asked_where_it_would_wait_for_metadata(
    status: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """libtpu would try the service again for minutes, with the interpreter to itself. The reason says what to set."""
    monkeypatch.delenv("TPU_SKIP_MDS_QUERY")
    watch = Watch(TpuMonitoring, _tpus(2))
    seen: list[tuple[str, str]] = []

    def answer(request: Request) -> int | None:
        seen.append((request, request.headers["Metadata-Flavor"]))
        return status

    with serving(answer) as url, FakeLibtpu(**ALL) as libtpu:
        port = free_port() if status is None else int(url.rpartition(":")[2])  # on the free one nobody listens
        monkeypatch.setattr(tpu_monitoring, "METADATA", ("127.0.0.1", port, "/tpu-env"))
        states = watch.sample()
        assert seen == ([] if status is None else [("/tpu-env", "Google")])
        assert bool(libtpu.asked) is bool(states) is (status == 200)
    notes = watch.store.snapshot().observer.notes
    assert [("TPU_SKIP_MDS_QUERY=1" in note) for note in notes] == ([] if status == 200 else [True])


@pytest.mark.parametrize(
    "prepare",
    [
        lambda watch: watch.store.configure(Settings(tpu_monitoring=False)),
        lambda watch: watch.source.after_fork(),  # libtpu's threads are the parent's
    ],
)
def test_it_is_not_asked_if_a_setting_says_so_and_in_a_forked_child(prepare: Any) -> None:
    watch = Watch(TpuMonitoring, _tpus(2))
    prepare(watch)
    with FakeLibtpu(**ALL) as libtpu:
        assert watch.sample() == {}
        assert libtpu.asked == []


def test_it_is_never_imported_without_a_tpu(tmp_path: pathlib.Path) -> None:
    """A `libtpu` that says so when it is imported: by JAX perhaps, by jaxobs on the CPU and with GPUs never."""
    (tmp_path / "libtpu.py").write_text(
        "import sys\n"
        "frame, callers = sys._getframe(), []\n"
        "while frame := frame.f_back: callers.append(frame.f_globals.get('__name__', ''))\n"
        "print('imported', any(each.startswith('jaxobs') for each in callers), flush=True)\n"
        "raise ImportError('poisoned')\n"
    )
    program = """
        import sys
        sys.path.insert(0, sys.argv[1])
        import jaxobs
        from jaxobs.session import lifecycle
        from jaxobs.state import store
        from jaxobs.testing import FakeClient, FakeDevice, backends
        jaxobs.install(port=0)
        import jax
        lifecycle._session.sample()
        jax.numpy.ones(3).block_until_ready()
        lifecycle._session.sample()
        with backends(FakeClient([FakeDevice(0)])):
            lifecycle._session.sample()
        print("on a CPU and a GPU", store.current().snapshot().observer.capabilities.get("libtpu"))
        from jaxobs.sources import libtpu
        with backends(FakeClient([FakeDevice(0, platform="tpu")], platform="tpu")):
            libtpu.WAIT_SECONDS = 10.0
            lifecycle._session.sample()
        print("on a TPU", store.current().snapshot().observer.capabilities.get("libtpu"))
    """
    ran = run(program, tmp_path, TPU_SKIP_MDS_QUERY="1")
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    before = lines[: lines.index("on a CPU and a GPU None")]
    assert "imported True" not in before
    assert lines[len(before) :] == ["on a CPU and a GPU None", "imported True", "on a TPU False"]
