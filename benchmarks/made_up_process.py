"""Export of a training process with so many devices and functions, at any age: for loads on a Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from jaxobs.facts.accelerators import AcceleratorState
from jaxobs.facts.compilations import PHASES, CacheState
from jaxobs.facts.functions import MEMORY_SECTIONS, FunctionState, Histogram, ProgramState
from jaxobs.facts.inputs import InputState
from jaxobs.facts.loops import LoopState
from jaxobs.facts.memory import DeviceMemory, DeviceState, account
from jaxobs.facts.process import ObserverState, ProcessState
from jaxobs.facts.snapshot import Snapshot
from jaxobs.facts.wall import TIME_CATEGORIES, TimeState
from jaxobs.metrics.buckets import DEVICE_BOUNDS, DISPATCH_BOUNDS, PHASE_BOUNDS, STEP_BOUNDS

T = TypeVar("T")

LIMIT = 80 * 2**30
PER_STEP = 0.5
INSTRUMENTED = 3
"""Functions whose calls are counted: the steps and what is around them."""
STEPPED = 4
"""Functions that compile again now and then."""


@dataclass
class MadeUpProcess:
    """Stands where a `Store` would: the exporter asks it for snapshots."""

    devices: int = 8
    functions: int = 50
    age: float = 0.0
    """Seconds; moves everything that moves."""
    start: float = 0.0
    collect_seconds: float | None = None
    dropped: int = 0

    def drop(self, reason: str, count: int = 1) -> None:
        """Series that the exporter's bound cut off."""
        self.dropped += count

    def part(self, kind: Callable[[], T]) -> T:
        """A part of a store that knows nothing yet, such as the exemplars."""
        return kind()

    def snapshot(self) -> Snapshot:
        """Everything at this age."""
        steps = int(self.age / PER_STEP)
        return Snapshot(
            time=self.start + self.age,
            process=ProcessState(
                pid=1, hostname="host", program="train.py", started=self.start, process_index=0, process_count=100,
                versions={"jaxobs": "0.1.0", "python": "3.12.8", "jax": "0.10.2", "jaxlib": "0.10.2"}, platform="gpu",
            ),
            functions=tuple(self._function(number, steps) for number in range(self.functions)),
            phases={phase: _histogram(PHASE_BOUNDS, self.functions, 1.3) for phase in PHASES},
            in_progress=(),
            devices=tuple(self._device(number) for number in range(self.devices)),
            accelerators=tuple(self._accelerator(number) for number in range(self.devices)),
            cache=CacheState(enabled=True, directory="/cache", unsaved={"too_fast": 20}, bytes=2**30, entries=300),
            observer=ObserverState(
                installed=True, capabilities={"call_sites": True}, collect_seconds=self.collect_seconds
            ),
            last_sequence=steps,
            wall=self._time(steps),
            loops=(
                LoopState(
                    name="train", steps=steps, items=512.0 * steps, seconds=_histogram(STEP_BOUNDS, steps, PER_STEP),
                    ended=self.start + self.age, mean_seconds=PER_STEP, flops=1e14, peak_flops=1e15,
                    mfu=0.4 + steps % 7 / 100,
                ),
            ),
            inputs=(InputState(name="train", batches=steps, wait_seconds=0.02 * steps),),
        )  # fmt: skip

    def _function(self, number: int, steps: int) -> FunctionState:
        again = int(self.age / 300) if number < STEPPED else 0
        compiled = {"compile": 2.0 * again} if again else {}
        called = steps if number < INSTRUMENTED else None
        return FunctionState(
            name=f"trainer.model.layer_{number}",
            calls=called,
            compilations={"first_call": {"hit": 1}, **({"shape": {"miss": again}} if again else {})},
            phase_seconds={"trace": 0.2 + again, "lower": 0.1 + again, "cache_load": 0.4} | compiled,
            phase_counts={"trace": 1 + again, "lower": 1 + again, "cache_load": 1, "compile": again},
            cache={"hit": 1, **({"miss": again} if again else {})},
            dispatch=None if called is None else _histogram(DISPATCH_BOUNDS, called, 3e-4),
            device=None if called is None else _histogram(DEVICE_BOUNDS, called, PER_STEP),
            last_compiled=self.start,
            program=ProgramState(
                time=self.start, flops=1e12 * number, bytes_accessed=1e9,
                memory=dict.fromkeys(MEMORY_SECTIONS, 2**20 * (number + 1)),
            ),
        )  # fmt: skip

    def _device(self, number: int) -> DeviceState:
        used = LIMIT // 2 + (number * 2**28 + int(self.age) * 2**20) % 2**34
        memory = DeviceMemory(
            time=self.start + self.age, device=f"gpu:{number}", in_use_bytes=used, peak_bytes=used, limit_bytes=LIMIT,
            reserved_bytes=0, largest_free_block_bytes=LIMIT - used, live_arrays=900 + int(self.age) % 50,
            live_array_bytes=used * 9 // 10, high_water_bytes=used, code_bytes=2**28,
        )  # fmt: skip
        return DeviceState(
            device=f"gpu:{number}", id=number, platform="gpu", device_kind="NVIDIA H100", process_index=0,
            pci_bus_id=f"0000:{number:02x}:00.0", memory=memory, account=account(memory),
        )  # fmt: skip

    def _accelerator(self, number: int) -> AcceleratorState:
        wave = (int(self.age) * (number + 3)) % 20
        return AcceleratorState(
            time=self.start + self.age, device=f"gpu:{number}", uuid=f"GPU-{number}", index=number,
            model="NVIDIA H100", driver_version="570.86.10", utilization=0.8 + wave / 100,
            memory_controller_utilization=0.5 + wave / 100, memory_used_bytes=LIMIT * 9 // 10, memory_total_bytes=LIMIT,
            power_watts=600.0 + wave, power_limit_watts=700.0, energy_joules=610.0 * self.age,
            temperature_celsius=60 + wave, sm_clock_hertz=1_980_000_000, memory_clock_hertz=2_600_000_000,
            throttle_reasons=(),
            ecc_errors={kind: {"volatile": 0, "aggregate": number} for kind in ("corrected", "uncorrected")},
            pcie_bytes={"transmit": int(self.age * 3e9), "receive": int(self.age * 2e9)},
            nvlink_bytes={"0": {"transmit": int(self.age * 9e10), "receive": int(self.age * 9e10)}}, nvlink_links=18,
            xid_errors={},
        )  # fmt: skip

    def _time(self, steps: int) -> TimeState:
        seconds = dict.fromkeys(TIME_CATEGORIES, 0.0)
        seconds |= {"init": 5.0, "compile": 20.0, "input_wait": 0.04 * self.age, "step": 0.96 * self.age}
        return TimeState(
            seconds=seconds, counted=seconds, category="step", wall_seconds=sum(seconds.values()), started=0.0,
            steps=steps, goodput=0.9, lost={"compile": 20.0}, checkpoints={},
        )  # fmt: skip


def _histogram(bounds: tuple[float, ...], count: int, around: float) -> Histogram:
    """Returns so many observations, most of them at one value and a tenth in the bucket above."""
    counts = [0] * (len(bounds) + 1)
    place = sum(bound < around for bound in bounds)
    counts[place] = count - count // 10
    counts[min(place + 1, len(bounds))] += count // 10
    return Histogram(bounds=bounds, counts=tuple(counts), sum=around * count)
