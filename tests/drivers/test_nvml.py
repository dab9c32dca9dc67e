"""The driver's view of the devices, through the real pynvml, against a library that answers as a test says."""

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from helpers.accelerator_watch import Watch

from jaxobs import internals
from jaxobs.base import guard
from jaxobs.drivers import nvml
from jaxobs.drivers.cuda_devices import Identity, JaxDevice, match
from jaxobs.facts.accelerators import THROTTLE_REASONS
from jaxobs.sources import nvml as nvml_source
from jaxobs.sources.nvml import Accelerators
from jaxobs.testing import FakeClient, FakeDevice, FakeNvml

pytestmark = pytest.mark.usefixtures("fresh")

PCIE_TX, PCIE_RX, NVLINK_TX, NVLINK_RX, NVLINK_SENT, NVLINK_RECEIVED = 197, 198, 138, 139, 202, 204
GIB = 2**30
LOST, NOT_SUPPORTED, DRIVER_NOT_LOADED = 15, 3, 9

ALL: Mapping[str, Any] = {
    "name": "Fake H100", "pci": "00000000:1B:00.0", "utilization__gpu": 87, "utilization__memory": 41,
    "memory__used": 61 * GIB, "memory__total": 80 * GIB, "power": 312_500,
    "power__limit": 700_000, "energy": 9_000_500, "temperature": 64, "clock__sm": 1980, "clock__memory": 2619,
    "throttle": 0x4 | 0x1, "ecc__corrected__volatile": 2, "ecc__corrected__aggregate": 7,
    "ecc__uncorrected__volatile": 0, "ecc__uncorrected__aggregate": 1, "xid": "none",
    "processes": f"{os.getpid()}:{60 * GIB} 4711:{GIB}",
}  # fmt: skip


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeNvml]:
    """A driver without devices, in the place of the machine's; CUDA sees all there will be."""
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(nvml_source, "WAIT_SECONDS", 5.0)
    with FakeNvml() as found:
        yield found


def _gpus(count: int, kind: str = "Fake H100") -> FakeClient:
    return FakeClient([FakeDevice(i, local_hardware_id=i, device_kind=kind) for i in range(count)])


def test_every_figure_in_base_units(fake: FakeNvml) -> None:
    fake.device(0, uuid="GPU-a", **ALL)
    fake.field(0, PCIE_TX, 5_000_000_000_000)
    fake.field(0, PCIE_RX, 6)
    for link in (0, 1):
        fake.field(0, NVLINK_TX, 100, scope=link)
        fake.field(0, NVLINK_RX, 10 + link, scope=link)
    watch = Watch(Accelerators, _gpus(1))
    state = watch.sample()["gpu:0"]
    assert (state.utilization, state.memory_controller_utilization) == (0.87, 0.41)
    assert (state.memory_used_bytes, state.memory_total_bytes) == (61 * GIB, 80 * GIB)
    assert (state.power_watts, state.power_limit_watts, state.energy_joules) == (312.5, 700.0, pytest.approx(9000.5))
    assert (state.temperature_celsius, state.sm_clock_hertz) == (64, 1_980_000_000)
    assert state.memory_clock_hertz == 2_619_000_000
    assert state.throttle_reasons == ("gpu_idle", "sw_power_cap")
    assert state.ecc_errors == {
        "corrected": {"volatile": 2, "aggregate": 7},
        "uncorrected": {"volatile": 0, "aggregate": 1},
    }
    assert state.pcie_bytes == {"transmit": 5_000_000_000_000, "receive": 6}
    assert state.nvlink_bytes["1"] == {"transmit": 102_400, "receive": 11 * 1024}
    assert state.xid_errors == {}
    assert (state.model, state.driver_version, state.up) == ("Fake H100", "570.86.10", True)
    found = watch.metrics()
    assert found["accelerator_info", "gpu:0", "GPU-a", "Fake H100", "00000000:1B:00.0", "570.86.10", ""] == 1
    assert found["accelerator_nvlink_bytes_total", "gpu:0", "transmit"] == 204_800
    assert found["accelerator_nvlink_links", "gpu:0"] == 2
    assert found["accelerator_process_memory_bytes", "gpu:0", "self"] == 60 * GIB
    assert found["accelerator_process_memory_bytes", "gpu:0", "others"] == GIB
    assert {name[2]: v for name, v in found.items() if name[0] == "accelerator_throttled"} == {
        reason: float(reason == "sw_power_cap") for reason in THROTTLE_REASONS
    }
    assert watch.store.snapshot().observer.capabilities["nvml"]


def test_what_is_not_supported_is_absent(fake: FakeNvml) -> None:
    """A device that tells nothing but its UUID: it is up, and has no figure at all; never a zero."""
    fake.device(0, uuid="GPU-a")
    watch = Watch(Accelerators, _gpus(1))
    assert watch.sample()["gpu:0"].up
    assert watch.sample()["gpu:0"].trouble is None
    assert {name[0] for name in watch.metrics()} == {"accelerator_info", "accelerator_up"}


@pytest.mark.parametrize("code", [1, 2, 3, 4, 6, 10, 13, 15, 16, 17, 999])
def test_any_question_may_fail_in_any_way(fake: FakeNvml, code: int) -> None:
    fake.device(0, uuid="GPU-a", **ALL)
    fake.device(1, uuid="GPU-b", **ALL)
    watch = Watch(Accelerators, _gpus(2))
    whole = watch.sample()["gpu:1"]
    for key in ALL:
        fake.device(0, **{key: f"error {code}"})
        states = watch.sample()
        assert states["gpu:0"].up or states["gpu:0"].trouble
        assert states["gpu:1"].power_watts == whole.power_watts
        fake.device(0, **{key: ALL[key]})
    fake.device(0, fields=f"error {code}")
    assert watch.sample()["gpu:0"].pcie_bytes == {}
    assert guard.internal_errors() == {}


def test_a_passing_error_costs_one_sample_of_one_figure(fake: FakeNvml) -> None:
    fake.device(0, uuid="GPU-a", **ALL)
    watch = Watch(Accelerators, _gpus(1))
    fake.device(0, power="error 999")
    state = watch.sample()["gpu:0"]
    assert (state.power_watts, state.temperature_celsius, state.up) == (None, 64, True)
    fake.device(0, power=1000)
    assert watch.sample()["gpu:0"].power_watts == 1.0


def test_an_old_driver_is_asked_by_the_older_names(fake: FakeNvml) -> None:
    """Before 510 there is one memory query, before 535 the reasons have another name."""
    fake.device(0, uuid="GPU-a", **ALL)
    fake.set(memory_v2="error 13", event_reasons="error 13")
    state = Watch(Accelerators, _gpus(1)).sample()["gpu:0"]
    assert (state.memory_used_bytes, state.throttle_reasons) == (61 * GIB, ("gpu_idle", "sw_power_cap"))


def test_a_count_of_32_bits_is_no_count(fake: FakeNvml) -> None:
    """A count of 32 bits would begin anew every tenth of a second at the speed of PCI Express."""
    fake.device(0, uuid="GPU-a")
    fake.field(0, PCIE_TX, 5)
    fake.device(0, **{f"field.{PCIE_TX}.0.type": 1})
    fake.field(0, PCIE_RX, 6)
    assert Watch(Accelerators, _gpus(1)).sample()["gpu:0"].pcie_bytes == {"receive": 6}


def test_a_link_that_stops_counting_takes_the_sum_away(fake: FakeNvml) -> None:
    """Fewer links would add up to less, and a smaller counter passes for one that began anew. Newer fields as well."""
    fake.device(0, uuid="GPU-a")
    for link in range(4):
        fake.field(0, NVLINK_SENT, 1000, scope=link)
        fake.field(0, NVLINK_RECEIVED, 1, scope=link)
    watch = Watch(Accelerators, _gpus(1))
    watch.sample()
    assert watch.metrics()["accelerator_nvlink_bytes_total", "gpu:0", "transmit"] == 4000
    for field in (NVLINK_SENT, NVLINK_RECEIVED):
        fake.field(0, field, None, scope=2)
    watch.sample()
    assert watch.metrics()["accelerator_nvlink_links", "gpu:0"] == 3
    assert "accelerator_nvlink_bytes_total" not in {name[0] for name in watch.metrics()}
    for field in (NVLINK_SENT, NVLINK_RECEIVED):
        fake.field(0, field, 2000, scope=2)
    watch.sample()
    assert watch.metrics()["accelerator_nvlink_bytes_total", "gpu:0", "transmit"] == 5000


def test_xids_are_counted_by_code(fake: FakeNvml) -> None:
    fake.device(0, uuid="GPU-a", xid="none")
    fake.device(1, uuid="GPU-b", xid="none")
    watch = Watch(Accelerators, _gpus(2))
    watch.sample()
    fake.device(0, xid="31 31 79")
    fake.device(1, xid="13")
    states = watch.sample()
    assert (states["gpu:0"].xid_errors, states["gpu:1"].xid_errors) == ({"31": 2, "79": 1}, {"13": 1})
    fake.device(0, xid="31 31 79 31")
    watch.sample()
    assert watch.metrics()["accelerator_xid_errors_total", "gpu:0", "31"] == 3
    notes = watch.store.snapshot().observer.notes
    assert sum("Xid 31 on gpu:0" in note for note in notes) == 1


def test_processes_of_whom_nobody_knows(fake: FakeNvml) -> None:
    """In a container the numbers are the host's: which one is ours is not told, nor what the others hold."""
    fake.device(0, uuid="GPU-a", processes="4000001:5 4000002:-")
    watch = Watch(Accelerators, _gpus(1))
    processes = watch.sample()["gpu:0"].processes
    assert [(each.pid, each.bytes, each.ours) for each in processes or ()] == [
        (4000001, 5, None), (4000002, None, None),
    ]  # fmt: skip
    assert watch.metrics()["accelerator_processes", "gpu:0"] == 2
    assert "accelerator_process_memory_bytes" not in {name[0] for name in watch.metrics()}


def test_a_lost_device_says_so_and_comes_back(fake: FakeNvml) -> None:
    for index, uuid in enumerate(("GPU-a", "GPU-b")):
        fake.device(index, uuid=uuid, **ALL)
    watch = Watch(Accelerators, _gpus(2))
    watch.sample()
    fake.device(0, lost=LOST, xid="79")
    states = watch.sample()
    assert (states["gpu:0"].up, states["gpu:0"].trouble) == (False, "GPU is lost")
    assert (states["gpu:0"].power_watts, states["gpu:0"].xid_errors) == (None, {"79": 1})
    assert states["gpu:1"].power_watts == 312.5
    assert watch.metrics()["accelerator_up", "gpu:0"] == 0
    assert watch.sample()["gpu:0"].xid_errors == {"79": 1}
    fake.device(0, lost=None, generation=1)
    state = watch.sample()["gpu:0"]
    assert (state.up, state.power_watts, state.xid_errors) == (True, 312.5, {"79": 1})


def test_a_hanging_device_keeps_nobody(fake: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tick goes on without it, it is asked once and not again, and after a while it is told of as hanging."""
    for index, uuid in enumerate(("GPU-a", "GPU-b")):
        fake.device(index, uuid=uuid, **ALL)
    watch = Watch(Accelerators, _gpus(2))
    watch.sample()
    monkeypatch.setattr(nvml_source, "WAIT_SECONDS", 0.2)
    fake.device(0, hang=1)
    fake.device(1, power=1000)
    try:
        states = watch.sample()
        assert (states["gpu:0"].power_watts, states["gpu:1"].power_watts) == (312.5, 1.0)
        monkeypatch.setattr(nvml_source, "HANG_SECONDS", 0.0)
        for _ in range(3):
            states = watch.sample()
        assert [each.name for each in threading.enumerate()].count("jaxobs-nvml") == 1
        assert "has not answered" in (states["gpu:0"].trouble or "")
        assert (states["gpu:0"].power_watts, states["gpu:1"].power_watts) == (None, 1.0)
    finally:
        fake.device(0, hang=None)
    monkeypatch.setattr(nvml_source, "WAIT_SECONDS", 5.0)
    assert watch.sample()["gpu:0"].power_watts == 312.5


def test_a_device_that_cannot_be_named_is_left_out(fake: FakeNvml) -> None:
    fake.device(0, uuid="GPU-a", handle=f"error {LOST}")
    fake.device(1, uuid="GPU-b", **ALL)
    assert {d: s.uuid for d, s in Watch(Accelerators, _gpus(1)).sample().items()} == {"gpu:0": "GPU-b"}


def test_nothing_is_loaded_without_a_gpu(fake: FakeNvml) -> None:
    """Before the program wakes JAX, on the CPU, and with AMD's devices: no library, no thread, no word."""
    for client in (
        FakeClient([]),
        FakeClient([FakeDevice(0, platform="cpu")], platform="cpu"),
        FakeClient([FakeDevice(0)], platform_version="PJRT C API\nrocm 60300"),
    ):
        watch = Watch(Accelerators, client)
        watch.sample()
        assert watch.source._opening is None
        assert "nvml" not in watch.store.snapshot().observer.capabilities
    assert not internals.backends_awake() or all(c.platform == "cpu" for c in internals.clients())


@pytest.mark.parametrize("trouble", ["no package", "no library", "no driver", "no device"])
def test_what_is_missing_is_said_once(trouble: str, fake: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    import pynvml

    if trouble == "no package":
        monkeypatch.setitem(sys.modules, "pynvml", None)
    elif trouble == "no library":
        monkeypatch.setattr(pynvml, "nvmlLib", None)
        monkeypatch.setattr(pynvml, "CDLL", lambda name: (_ for _ in ()).throw(OSError(name)))
    elif trouble == "no driver":
        fake.set(init=f"error {DRIVER_NOT_LOADED}")
    watch = Watch(Accelerators, _gpus(1))
    for _ in range(3):
        assert watch.sample() == {}
    monkeypatch.undo()
    observer = watch.store.snapshot().observer
    assert observer.capabilities == {"nvml": False}
    expected = {
        "no package": ("pip install 'nvidia-ml-py",),
        "no library": ("NVML Shared Library Not Found",),
        "no driver": ("Driver Not Loaded",),
        "no device": (),
    }[trouble]
    assert len(observer.notes) == len(expected)
    assert all(part in note for part, note in zip(expected, observer.notes, strict=True))
    assert guard.internal_errors() == {}
    fake.set(init=None)


FOUR = [Identity(uuid=f"GPU-{letter}", index=i, model="H100") for i, letter in enumerate("abcd")]
MIXED = [Identity(uuid="GPU-a", index=0, model="T4"), *FOUR[1:3]]
PARTS = [
    Identity(uuid="GPU-a", index=0, model="H100", divided=True),
    *(Identity(uuid=f"MIG-{i}", index=0, instance=i, parent="GPU-a", model="H100 MIG") for i in range(3)),
]


def _matched(found: list[Identity], count: int, kind: str = "H100", **environment: str) -> str:
    devices = [JaxDevice(name=f"gpu:{i}", kind=kind, ordinal=i) for i in range(count)]
    names = match(devices, found, environment)
    return " ".join(sorted(f"{name[4:]}={uuid}" for uuid, name in names.items()))


@pytest.mark.parametrize(
    ("visible", "count", "expected"),
    [
        ("2,0", 2, "0=GPU-c 1=GPU-a"), (" 3 , 1", 2, "0=GPU-d 1=GPU-b"), ("GPU-d,GPU-a", 2, "0=GPU-d 1=GPU-a"),
        ("1,-1,2", 1, "0=GPU-b"), ("1,9,2", 2, "0=GPU-b"), ("1,1", 1, ""), ("GPU-", 1, ""), ("", 1, ""),
    ],
)  # fmt: skip
def test_visible_devices(visible: str, count: int, expected: str) -> None:
    assert _matched(FOUR, count, CUDA_VISIBLE_DEVICES=visible) == expected


def test_devices_of_several_models() -> None:
    """CUDA numbers the fastest first, unless told otherwise: that is not guessed, but a model there once is known."""
    assert _matched(MIXED, 3) == ""
    assert _matched(MIXED, 3, CUDA_DEVICE_ORDER="PCI_BUS_ID") == "0=GPU-a 1=GPU-b 2=GPU-c"
    assert _matched(MIXED, 1, kind="T4", CUDA_VISIBLE_DEVICES="2") == "0=GPU-a"
    assert _matched(MIXED, 1, CUDA_VISIBLE_DEVICES="GPU-c") == "0=GPU-c"
    assert _matched(FOUR, 4) == "0=GPU-a 1=GPU-b 2=GPU-c 3=GPU-d"


def test_the_bus_decides_where_jax_tells_it() -> None:
    found = [Identity(uuid=f"GPU-{i}", index=i, pci_bus_id=f"00000000:{i + 0x1A:02X}:00.0") for i in range(3)]
    devices = [JaxDevice(name="gpu:7", kind="H100", ordinal=0, pci_bus_id="0000:1c:00.0")]
    assert match(devices, found, {}) == {"GPU-2": "gpu:7"}


def test_instances_of_a_divided_device() -> None:
    """By UUID or its beginning; by number only where there is but one; a divided device is none of JAX's."""
    assert _matched(PARTS, 1, "H100 MIG", CUDA_VISIBLE_DEVICES="MIG-1") == "0=MIG-1"
    assert _matched(PARTS, 1, "H100 MIG", CUDA_VISIBLE_DEVICES="0") == ""
    assert _matched(PARTS, 1, "H100 MIG") == ""
    assert _matched(PARTS[:2], 1, "H100 MIG") == "0=MIG-0"
    assert _matched(PARTS[:2], 1, "H100 MIG", CUDA_VISIBLE_DEVICES="GPU-a") == "0=MIG-0"


def test_mig_through_the_driver(fake: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.device(0, uuid="GPU-a", mig=1, **ALL)
    for number in (0, 1):
        fake.device(
            f"0/{number}", uuid=f"MIG-{number}", name="Fake MIG", memory__used=number, memory__total=10, power=5
        )
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-1")
    states = Watch(Accelerators, _gpus(1)).sample()
    assert set(states) == {"gpu:0", "nvml:0"}
    assert (states["gpu:0"].memory_used_bytes, states["gpu:0"].parent) == (1, "GPU-a")
    assert (states["gpu:0"].power_watts, states["nvml:0"].power_watts) == (None, 312.5)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert set(Watch(Accelerators, _gpus(1)).sample()) == {"nvml:0", "nvml:0/0", "nvml:0/1"}


def test_other_processes_devices_are_theirs_to_tell_of(fake: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    for index in range(4):
        fake.device(index, uuid=f"GPU-{index}", power=index * 1000)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    states = Watch(Accelerators, _gpus(2)).sample()
    assert {device: state.power_watts for device, state in states.items()} == {"gpu:0": 3.0, "gpu:1": 1.0}
    assert [state.index for state in states.values()] == [1, 3]


def test_a_forked_child_opens_the_library_anew() -> None:
    script = """
        import os, threading, warnings
        warnings.simplefilter("ignore")
        from jaxobs.sources import nvml as module
        from jaxobs.state.store import Store
        from jaxobs.testing import FakeClient, FakeDevice, FakeNvml, backends
        module.WAIT_SECONDS = 5.0
        fake = FakeNvml()
        fake.device(0, uuid="GPU-a", power=2000)
        fake.__enter__()
        store = Store()
        source = module.Accelerators(store)
        def look():
            with backends(FakeClient([FakeDevice(0, local_hardware_id=0)])):
                source.sample()
            return [(each.device, each.power_watts) for each in store.snapshot().accelerators]
        print(look(), flush=True)
        child = os.fork()
        if child == 0:
            store.after_fork()
            source.after_fork()
            assert not store.snapshot().accelerators and not source._watched
            print(look(), threading.active_count(), flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print(look())
        source.stop()
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["[('gpu:0', 2.0)]", "[('gpu:0', 2.0)] 1", "[('gpu:0', 2.0)]"]


def test_stopping_gives_the_library_back(fake: FakeNvml) -> None:
    """As often as it was opened: another user of NVML in the process keeps his."""
    import pynvml

    fake.device(0, uuid="GPU-a")
    before = pynvml._nvmlLib_refcount
    watch = Watch(Accelerators, _gpus(1))
    watch.sample()
    assert pynvml._nvmlLib_refcount == before + 1
    watch.source.stop()
    assert pynvml._nvmlLib_refcount == before
    assert nvml.open_devices()
    nvml.close()
