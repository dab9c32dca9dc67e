"""Rules for a GPU's figures: allocator against driver, a report of memory that ran out, a busy device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxobs.facts.accelerators import AcceleratorState
from jaxobs.facts.errors import OutOfMemory
from jaxobs.facts.memory import DeviceState

MIB, GIB = 2**20, 2**30


@dataclass(frozen=True)
class Line:
    """A figure, and whether it is as it should be."""

    what: str
    found: str
    expected: str
    holds: bool


def judge_memory(
    device: DeviceState, driver: AcceleratorState, held: int, before: int | None, preallocated: bool
) -> list[Line]:
    """JAX's allocator and the driver on one device that holds one array of `held` bytes.

    Args:
      before: bytes that the driver saw in use before JAX was used; None where it is not known.
    """
    memory = device.memory
    in_use, limit = (memory.in_use_bytes, memory.limit_bytes) if memory else (None, None)
    live = memory.live_array_bytes if memory else None
    used, total = driver.memory_used_bytes, driver.memory_total_bytes
    grown = None if used is None or before is None else used - before
    least = limit if preallocated else in_use
    return [
        Line("the driver's device", f"{driver.device} ({driver.model})", device.device, driver.device == device.device),
        _between("bytes of live arrays", live, held, held),
        _between("in use, by JAX's allocator", in_use, held, held + 256 * MIB),
        _between("limit, by JAX's allocator", limit, in_use, total),
        _between("used, by the driver", used, in_use, total),
        _between("taken from the driver since JAX began", grown, least, None if least is None else least + 2 * GIB),
    ]


def judge_out_of_memory(event: OutOfMemory | None, device: str, wanted: int, causes: Sequence[str]) -> list[Line]:
    """The report of a call that wanted `wanted` bytes or a little more."""
    if event is None:
        return [Line("report", "none", "one", False)]
    cause = event.causes[0].cause if event.causes else "none"
    seconds = event.seconds if event.seconds is not None else float("inf")
    return [
        Line("stage", event.stage, "any but unknown", event.stage != "unknown"),
        Line("device", str(event.device), device, event.device == device),
        _between("bytes wanted, as the error tells", event.wanted_bytes, wanted, 2 * wanted),
        Line("likeliest cause", cause, " or ".join(causes), cause in causes),
        Line("seconds for the report", f"{seconds:.2f}", "at most 2", seconds <= 2.0),
        Line("text file", "written" if event.report else "none", "written", bool(event.report)),
    ]


def judge_busy(idle: Sequence[AcceleratorState], busy: Sequence[AcceleratorState]) -> list[Line]:
    """The driver's figures before a matrix product runs again and again, and while it does."""
    quiet, power = _mean([each.power_watts for each in idle]), _mean([each.power_watts for each in busy])
    share = max((each.utilization for each in busy if each.utilization is not None), default=None)
    lines = [
        Line("power, idle", _number(quiet, "W"), "told", quiet is not None),
        Line("power, busy", _number(power, "W"), "more", power is not None and quiet is not None and power > quiet),
        Line("utilization, busy", _number(share, ""), "at least 0.90", share is not None and share >= 0.9),
    ]
    told = [(each.time, each.energy_joules) for each in busy if each.energy_joules is not None]
    if len(told) > 1 and power is not None:
        seconds, joules = told[-1][0] - told[0][0], (told[-1][1] or 0.0) - (told[0][1] or 0.0)
        found = joules / seconds if seconds > 0 else 0.0
        lines.append(
            Line("power by the energy counter", _number(found, "W"), "within 30 %", abs(found - power) <= 0.3 * power)
        )
    hot = max((each.temperature_celsius for each in busy if each.temperature_celsius is not None), default=None)
    lines.append(Line("temperature, busy", _number(hot, "°C"), "10 to 110", hot is not None and 10 <= hot <= 110))
    return lines


def _between(what: str, found: int | None, least: int | None, most: int | None) -> Line:
    holds = found is not None and least is not None and most is not None and least <= found <= most
    expected = _bytes(least) if least == most else f"{_bytes(least)} to {_bytes(most)}"
    return Line(what, _bytes(found), expected, holds)


def _bytes(value: int | None) -> str:
    return "not told" if value is None else f"{value / GIB:.2f} GiB"


def _number(value: float | None, unit: str) -> str:
    return "not told" if value is None else f"{value:.2f} {unit}".strip()


def _mean(values: Sequence[float | None]) -> float | None:
    told = [each for each in values if each is not None]
    return sum(told) / len(told) if told else None
