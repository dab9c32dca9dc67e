"""Model FLOP utilization: what a step computes, against what the device could compute in that time.

    MFU = FLOPs of a step on one device / (mean time of a step x peak FLOP/s of one device)

The compiler counts the operations of a program on one device, so that the number of devices is in it already; what it
leaves out is added (see `jaxobs.hlo_products`). A step's are those of the instrumented functions that it calls. Where
any part of it is not certain there is no figure, and a sentence that says why.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jaxobs.call_stats import label
from jaxobs.facts import Compilation, DeviceState, FunctionState, LoopState
from jaxobs.found_loops import FoundLoops
from jaxobs.loops import REST_SECONDS, Loops
from jaxobs.peaks import peak_flops

MOST_FUNCTIONS = 1000
MOST_PROGRAMS = 16
ALIKE = 1.01
"""Programs of one function whose FLOPs differ by less are taken as one: other types or placements of the same sizes."""
_RESTING_STEPS = 20.0


@dataclass(slots=True)
class _Made:
    """The programs of one function."""

    first: float
    programs: int = 0


class ProgramFlops:
    """FLOPs of the programs of each function, as far as the compiler told them."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._known: dict[str, dict[float, float | None]] = {}
        self._made: dict[str, _Made] = {}

    def see(self, event: Compilation) -> None:
        """A program was compiled or loaded; those that a transformation derived are not what a call runs."""
        if event.eager or event.transform is not None:
            return
        with self._lock:
            name = label(event.function)
            if name not in self._known and len(self._known) >= MOST_FUNCTIONS:
                del self._known[next(iter(self._known))]
            if name not in self._made and len(self._made) >= MOST_FUNCTIONS:
                del self._made[next(iter(self._made))]
            made = self._made.setdefault(name, _Made(event.time))
            made.programs += 1
            programs = self._known.setdefault(name, {})
            if len(programs) <= MOST_PROGRAMS:
                programs[event.time] = event.flops

    def made(self, name: str) -> tuple[float | None, int]:
        """When the first program of the function was made, and how many were."""
        with self._lock:
            made = self._made.get(name)
            return (None, 0) if made is None else (made.first, made.programs)

    def work(self, names: Iterable[str]) -> dict[str, float]:
        """FLOPs of one call of each, to compare them: of its largest program; 0 where they are not known."""
        with self._lock:
            return {
                name: max((each or 0.0 for each in self._known.get(name, {}).values()), default=0.0) for name in names
            }

    def of_call(self, name: str, function: FunctionState | None) -> tuple[float | None, str | None]:
        """FLOPs of one call on one device; or None, and why."""
        with self._lock:
            programs = self._known.get(name, {})
            program = None if function is None else function.program
            if program is not None and program.flops is not None and programs.get(program.time, 0.0) is None:
                programs[program.time] = program.flops
            known = list(programs.values())
        if program is None or not known:
            return None, f"No program of `{name}` was seen."
        if len(known) > MOST_PROGRAMS:
            return None, f"`{name}` has more than {MOST_PROGRAMS} programs: which of them a step runs is not seen."
        if program.all_flops is None:
            return None, (
                f"The FLOPs of `{name}` are not known: its program was not read yet, is too large to be read, or "
                "has kernels or loops that do not tell what they compute."
            )
        told = [each for each in known if each is not None]
        if told and len(told) < len(known):
            return None, f"The compiler's FLOP count of an earlier program of `{name}` is not known."
        if told and max(told) > ALIKE * min(told):
            return None, (
                f"`{name}` has programs of {min(told):.3g} to {max(told):.3g} FLOP: which of them a step runs is not "
                "seen."
            )
        return program.all_flops, None


def loop_states(
    part: Callable[[Any], Any], functions: Iterable[FunctionState], devices: Iterable[DeviceState],
    setting: float | None,
) -> tuple[LoopState, ...]:  # fmt: skip
    """The loops that the program tells of; else those that were found.

    Args:
      part: `Store.part`.
      functions: as in the snapshot.
      devices: as in the snapshot.
      setting: `peak_flops`, where it is given.
    """
    told = [(each.frozen(), each.threads()) for each in part(Loops).all()]
    loops = told or [(each, part(FoundLoops).threads(each.name)) for each in part(FoundLoops).frozen()]
    if not loops:
        return ()
    by_name, flops, devices = {each.name: each for each in functions}, part(ProgramFlops), list(devices)
    return tuple(completed(each, by_name, flops, devices, setting, threads=threads) for each, threads in loops)


def completed(
    state: LoopState, functions: Mapping[str, FunctionState], flops: ProgramFlops, devices: Iterable[DeviceState],
    setting: float | None, *, threads: int = 1,
) -> LoopState:  # fmt: skip
    """The loop with FLOPs, peak and MFU, or why there is none."""
    peak, unknown = _peak(devices, setting)
    total, why = _flops(state, functions, flops)
    unknown = why or unknown
    mfu = None
    if threads > 1:
        unknown = "Its steps run on several threads at once: what each of them calls is not told apart."
    elif _rests(state):
        unknown = "It made no step lately."
    elif total is not None and peak is not None and state.mean_seconds:
        mfu = total / (state.mean_seconds * peak)
    elif unknown is None:
        unknown = "There were too few steps."
    return dataclasses.replace(
        state, flops=total, peak_flops=peak, mfu=mfu, mfu_unknown=None if mfu is not None else unknown
    )


def _flops(
    state: LoopState, functions: Mapping[str, FunctionState], flops: ProgramFlops
) -> tuple[float | None, str | None]:
    if not state.calls:
        return None, "No instrumented function was seen in its steps: see `jaxobs.jit` and `--instrument`."
    total = 0.0
    for name, calls in state.calls.items():
        each, why = flops.of_call(name, functions.get(name))
        if each is None:
            return None, why
        total += calls * each
    return total, None


def _peak(devices: Iterable[DeviceState], setting: float | None) -> tuple[float | None, str | None]:
    if setting is not None:
        return setting, None
    kinds = sorted({each.device_kind for each in devices})
    if not kinds:
        return None, "No device is known yet."
    if len(kinds) > 1:
        return None, f"There are devices of several kinds: {', '.join(f'`{kind}`' for kind in kinds)}."
    found = peak_flops(kinds[0])
    if found is None:
        return None, f"The peak of `{kinds[0]}` is not known: give it by the setting `peak_flops`."
    return found, None


def _rests(state: LoopState) -> bool:
    if state.ended is None:
        return True
    return time.time() - state.ended > max(REST_SECONDS, _RESTING_STEPS * (state.mean_seconds or 0.0))
