"""Model FLOP utilization: what a step computes, against what the device could compute in that time.

    MFU = FLOPs of a step on one device / (mean time of a step x peak FLOP/s of one device)

The compiler counts the operations of a program on one device, so that the number of devices is in it already; what it
leaves out is added (see `programs.hlo_products`). A step's are those of the jitted functions that it calls. Where any
part of it is not certain there is no figure, and a sentence that says why.
"""

import dataclasses
import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jaxobs.base import threads
from jaxobs.drivers.peaks import peak_flops
from jaxobs.facts.compilations import Compilation
from jaxobs.facts.functions import FunctionState
from jaxobs.facts.loops import LoopState
from jaxobs.facts.memory import DeviceState
from jaxobs.state.call_stats import label
from jaxobs.state.loops import REST_SECONDS, UNNAMED, Loops, NoLoops

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
    seconds: float = 0.0
    """Seconds to trace, lower and compile or load the most expensive of the programs."""


class ProgramFlops:
    """FLOPs of the programs of each function, as far as the compiler told them."""

    def __init__(self) -> None:
        self._lock = threads.RLock()
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
            made.seconds = max(made.seconds, sum(event.phases.values()))
            programs = self._known.setdefault(name, {})
            if len(programs) <= MOST_PROGRAMS:
                programs[event.time] = event.flops

    def learn(self, name: str, compiled: float, flops: float | None) -> None:
        """The compiler's count of a program that was made at that time, where it was not asked at once."""
        with self._lock:
            programs = self._known.get(label(name), {})
            if flops is not None and programs.get(compiled, 0.0) is None:
                programs[compiled] = flops

    def made(self, name: str) -> tuple[float | None, int]:
        """Returns the time of the first program of the function and the number of its programs."""
        with self._lock:
            made = self._made.get(name)
            return (None, 0) if made is None else (made.first, made.programs)

    def numbers(self) -> dict[str, int]:
        """Returns the number of programs of each function."""
        with self._lock:
            return {name: made.programs for name, made in self._made.items()}

    def work(self, calls: Mapping[str, int]) -> dict[str, float]:
        """Returns the work of these calls by function, to compare functions: FLOPs of the largest program times calls.

        Where these are not known of all, what that program took to compile stands for them: the step of a training loop
        is larger than what makes its data, or what steps its environment. How often it is called counts for less then.
        """
        with self._lock:
            flops = {
                name: max((each or 0.0 for each in self._known.get(name, {}).values()), default=0.0) for name in calls
            }
            if all(flops.values()):
                return {name: flops[name] * made for name, made in calls.items()}
            return {
                name: self._made[name].seconds * math.sqrt(made) if name in self._made else 0.0
                for name, made in calls.items()
            }

    def is_large(self, name: str, others: Collection[str]) -> bool:
        """Whether none of `others` took more than twice as long to compile: what makes data is small next to a step."""
        with self._lock:
            most = max((self._made[each].seconds for each in others if each in self._made), default=0.0)
            return name not in self._made or 2.0 * self._made[name].seconds >= most

    def of_call(self, name: str, function: FunctionState | None) -> tuple[float | None, str | None]:
        """FLOPs of one call on one device; or None, and why."""
        with self._lock:
            programs = self._known.get(name, {})
            program = None if function is None else function.program
            if program is not None and program.flops is not None and programs.get(program.time, 0.0) is None:
                programs[program.time] = program.flops
            known = list(programs.values())
        if program is None or not known:
            return None, f"No program of `{name}` was observed."
        if len(known) > MOST_PROGRAMS:
            return None, f"`{name}` has more than {MOST_PROGRAMS} programs: which of them a step runs is unknown."
        if program.all_flops is None:
            return None, (
                f"The FLOPs of `{name}` are unknown: its program was not read yet, is too large to read, or "
                "has kernels or loops that do not reveal what they compute."
            )
        told = [each for each in known if each is not None]
        if told and len(told) < len(known):
            return None, f"The compiler's FLOP count of an earlier program of `{name}` is unknown."
        if told and max(told) > ALIKE * min(told):
            return None, (
                f"`{name}` has programs of {min(told):.3g} to {max(told):.3g} FLOP: which of them a step runs is "
                "unknown."
            )
        return program.all_flops, None

    def range_of_call(self, name: str, function: FunctionState | None) -> tuple[float, float] | None:
        """FLOPs of the smallest and largest program that a call may run; None if either is not certain."""
        program = None if function is None else function.program
        if program is None or program.all_flops is None or program.all_flops != program.flops:
            return None
        with self._lock:
            known = list(self._known.get(name, {}).values())
        told = [each for each in known if each is not None]
        if not told or len(told) < len(known) or len(known) > MOST_PROGRAMS:
            return None
        return min(told), max(told)


def loop_states(
    part: Callable[[Any], Any], functions: Iterable[FunctionState], devices: Iterable[DeviceState],
    setting: float | None,
) -> tuple[LoopState, ...]:  # fmt: skip
    """The loops that the program reports, else those that were found; `functions` as in the snapshot."""
    told = [(each.frozen(), each.threads()) for each in part(Loops).all()]
    found: NoLoops = part(NoLoops)
    loops = told or [(each, found.threads(each.name)) for each in found.frozen()]
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
    mfu = between = None
    if threads > 1:
        unknown = "Its steps run on several threads at once: what each of them calls cannot be distinguished."
    elif _rests(state):
        unknown = "It has made no step recently."
    elif total is not None and peak is not None and state.mean_seconds:
        mfu = total / (state.mean_seconds * peak)
    elif total is None and peak is not None and state.mean_seconds:
        between = _between(state, functions, flops, state.mean_seconds * peak)
    elif unknown is None:
        unknown = "There were too few steps."
    return dataclasses.replace(
        state, flops=total, peak_flops=peak, mfu=mfu, mfu_range=between,
        mfu_unknown=None if mfu is not None else unknown,
    )  # fmt: skip


def _between(
    state: LoopState, functions: Mapping[str, FunctionState], flops: ProgramFlops, whole: float
) -> tuple[float, float] | None:
    """The least and the most that the calls of a step can make of `whole`, the FLOPs that the device could do."""
    ranges = {name: flops.range_of_call(name, functions.get(name)) for name in state.calls}
    least = most = 0.0
    for name, calls in state.calls.items():
        found = ranges[name]
        if found is None:
            return None
        least, most = least + calls * found[0], most + calls * found[1]
    return (least / whole, most / whole) if ranges else None


def _flops(
    state: LoopState, functions: Mapping[str, FunctionState], flops: ProgramFlops
) -> tuple[float | None, str | None]:
    if not state.calls:
        return None, "No call of a jitted function was seen in its steps."
    if UNNAMED in state.calls:
        return None, (
            "Its steps call a program whose function is unknown, such as one that was compiled ahead of time: wrap "
            "that with `jaxobs.instrument(compiled, name=...)`."
        )
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
        return None, f"The peak of `{kinds[0]}` is unknown: set it with `peak_flops`."
    return found, None


def _rests(state: LoopState) -> bool:
    if state.ended is None:
        return True
    return time.time() - state.ended > max(REST_SECONDS, _RESTING_STEPS * (state.mean_seconds or 0.0))
