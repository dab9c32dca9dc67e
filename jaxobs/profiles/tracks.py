"""A trace by device: what ran on each, in rows of which each is in order or nested, and what the host did meanwhile.

Every backend writes its planes in its own way. The CPU's operations lie on the threads of the host, each with its
device's number from JAX 0.7 on; a GPU's on a line for each stream; a TPU core's on the line "XLA Ops".
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from jaxobs.base import pacing
from jaxobs.internals.xplane.modules import Module, programs
from jaxobs.internals.xplane.space import Event, Line, Plane, Space, Stats

HOST_PLANE = "/host:CPU"
_ENVIRONMENT = "Task Environment"
_DEVICE_PLANE = re.compile(r"/device:(GPU|TPU):(\d+)$")
_STREAM = re.compile(r"Stream #|XLA Ops$")
_ASYNCHRONOUS = "Async XLA Ops"
_MODULES = "XLA Modules"
_STEPS = "Steps"
_NUMBERED = re.compile(r"^(.*)\((-?\d+)\)$")
_TEXT = re.compile(r"^%([\w.\-]+) = ")
_NOISE = ("end: ", "ThreadpoolListener::", "PythonRefManager::")


class Run(NamedTuple):
    """A run of an operation."""

    start: float
    """Nanoseconds; `end` likewise."""
    end: float
    operation: str
    module: str
    """The program's name, empty where it belongs to none."""
    program: int | None
    execution: int | None
    """Which execution of the program it was part of."""
    stats: Stats
    """Statistics of the backend on this run and on all runs of this operation."""


@dataclass(frozen=True, slots=True)
class Track:
    """The runs of one device."""

    device: str
    rows: tuple[tuple[Run, ...], ...] = ()
    aside: tuple[tuple[Run, ...], ...] = ()
    """Exchanges and copies that ran next to the rows, from their start to their end."""
    executions: tuple[Run, ...] = ()
    """Whole programs, where the backend reports them."""
    kind: str | None = None
    """As JAX's `device_kind`, where the trace has it."""
    peak_flops: float | None = None
    """FLOP/s, where the trace has it; `bandwidth`, in bytes/s, likewise."""
    bandwidth: float | None = None


class HostEvent(NamedTuple):
    """Something that a thread of the host did."""

    start: float
    end: float
    name: str
    stats: Stats


class Step(NamedTuple):
    """A step that the program declared."""

    start: float
    end: float
    name: str
    number: int


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace of one process, or of several that were merged."""

    tracks: tuple[Track, ...] = ()
    host: Mapping[str, tuple[HostEvent, ...]] = field(default_factory=dict)
    """Events of each thread, by its name: all of them for the threads that run Python."""
    steps: tuple[Step, ...] = ()
    programs: Mapping[int, Module] = field(default_factory=dict)
    began: float | None = None
    """Nanoseconds since the epoch at which its clock was 0; None where the trace doesn't say."""

    @property
    def window(self) -> tuple[float, float]:
        """From the first to the last thing that was recorded, in nanoseconds."""
        rows: list[Iterable[Run | HostEvent]] = [row for each in self.tracks for row in (*each.rows, *each.aside)]
        rows += self.host.values()
        starts = [event.start for row in rows for event in row]
        ends = [event.end for row in rows for event in row]
        return (min(starts), max(ends)) if starts else (0.0, 0.0)


def wanted(plane: str, event: str) -> bool:
    """Returns whether an event can matter here: most of the host's are marks of its thread pools."""
    return not (plane == HOST_PLANE and event.startswith(_NOISE))


def trace_of(space: Space) -> Trace:
    """Returns the devices, the host and the programs of a trace."""
    tracks: list[Track] = []
    host: dict[str, tuple[HostEvent, ...]] = {}
    steps: list[Step] = []
    began: float | None = None
    for plane in space.planes:
        found = _DEVICE_PLANE.match(plane.name)
        if found is not None:
            tracks.append(_accelerator(plane, f"{found[1].lower()}:{found[2]}"))
        elif plane.name == HOST_PLANE:
            tracks += _cpu_devices(plane)
            steps += _steps(plane)
            for number, line in enumerate(plane.lines):
                events = tuple(_host_events(line))
                if events:
                    host[f"{line.name}#{number}"] = events
        elif plane.name == _ENVIRONMENT:
            began = _scaled(plane.stats.get("profile_start_time"), 1)
    kept = tuple(each for each in tracks if any(each.rows) or any(each.aside))
    return Trace(kept, host, tuple(sorted(set(steps))), programs(space), began)


# -------------------------------------------------------------------------------------------------- accelerators


def _accelerator(plane: Plane, device: str) -> Track:
    modules = [each for line in plane.lines if line.name == _MODULES for each in _executions(line)]
    modules.sort()
    starts = [each.start for each in modules]
    lines = [line for line in plane.lines if _STREAM.match(line.name)]
    streams = [line for line in lines if line.name != "XLA Ops"]
    rows = [tuple(_run(event, modules, starts) for event in line.events) for line in streams or lines]
    aside = [
        tuple(_run(event, modules, starts) for event in line.events)
        for line in plane.lines
        if line.name == _ASYNCHRONOUS
    ]
    kind = plane.stats.get("device_type_string")
    return Track(
        device,
        tuple(row for row in rows if row),
        tuple(row for row in aside if row),
        tuple(modules),
        kind if isinstance(kind, str) and kind else None,
        _scaled(plane.stats.get("peak_teraflops_per_second"), 1e12),
        _scaled(plane.stats.get("peak_hbm_bw_gigabytes_per_second"), 1e9)
        or _scaled(plane.stats.get("memory_bandwidth"), 1),
    )


def _scaled(value: object, factor: float) -> float | None:
    return value * factor if isinstance(value, int | float) and value > 0 else None


def _executions(line: Line) -> Iterator[Run]:
    for event in line.events:
        numbered = _NUMBERED.match(event.kind.name)
        name, program = (numbered[1], int(numbered[2])) if numbered is not None else (event.kind.name, None)
        execution = _integer(event.stats, "run_id")
        yield Run(event.start, event.end, "", name, _integer(event.stats, "program_id") or program, execution, {})


def _run(event: Event, modules: list[Run], starts: list[float]) -> Run:
    """Returns a run, in the program that it says, or in which it happened."""
    stats = {**event.kind.stats, **event.stats} if event.kind.stats else event.stats
    module = stats.get("hlo_module")
    program, execution = _integer(stats, "program_id"), _integer(stats, "run_id")
    if module is None or program is None or execution is None:
        at = bisect_right(starts, event.start) - 1
        if at >= 0 and event.start < modules[at].end:
            around = modules[at]
            module = module or around.module
            program = around.program if program is None else program
            execution = around.execution if execution is None else execution
    operation = stats.get("hlo_op")
    name = operation if isinstance(operation, str) and operation else _operation(event)
    return Run(event.start, event.end, name, str(module or ""), program, execution, stats)


def _operation(event: Event) -> str:
    """TPUs name an event by the whole text of its instruction."""
    text = _TEXT.match(event.kind.name)
    return text[1] if text is not None else event.kind.display_name or event.kind.name


def _integer(stats: Stats, name: str) -> int | None:
    value = stats.get(name)
    if isinstance(value, str) and value.lstrip("-").isdigit():
        return int(value)
    return value if isinstance(value, int) else None


# ---------------------------------------------------------------------------------------------------------- host


def _cpu_devices(plane: Plane) -> list[Track]:
    """Returns the operations of the host's threads by device; a thread works for one device after another."""
    rows: dict[str, dict[int, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for number, line in enumerate(plane.lines):
        pacing.offer()
        for event in line.events:
            operation = event.stats.get("hlo_op")
            if isinstance(operation, str):
                ordinal = _integer(event.stats, "device_ordinal")
                device = "cpu" if ordinal is None else f"cpu:{ordinal}"
                rows[device][number].append(
                    Run(
                        event.start, event.end, operation, str(event.stats.get("hlo_module", "")),
                        _integer(event.stats, "program_id"), _integer(event.stats, "run_id"), event.stats,
                    )
                )  # fmt: skip
    return [
        Track(device, tuple(tuple(row) for row in lines.values()))
        for device, lines in sorted(rows.items(), key=lambda item: (len(item[0]), item[0]))
    ]


def _host_events(line: Line) -> Iterator[HostEvent]:
    for event in line.events:
        if "hlo_op" not in event.stats and event.end > event.start and "profiler.py:" not in event.kind.name:
            yield HostEvent(event.start, event.end, event.kind.name, event.stats)


def _steps(plane: Plane) -> Iterator[Step]:
    for line in plane.lines:
        for event in line.events:
            number = _integer(event.stats, "step_num")
            if number is not None:
                yield Step(event.start, event.end, event.kind.name, number)
