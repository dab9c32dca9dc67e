"""Samples of where the devices' time goes: short traces that jaxobs takes by itself and reads at once."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from jaxobs.facts.events import Event
from jaxobs.facts.profiles import IdleTime, OperationTime

IDLE = "<idle>"
"""Among functions, what keeps devices idle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledFunction:
    """Device time of the programs of one function."""

    function: str
    """As in `Compilation` where that is known, else JAX's name for it; `<none>` for what belongs to no program."""
    seconds: Mapping[str, float]
    """Added up over devices, by category of operation."""
    exposed_seconds: float | None = None
    """Time of its exchanges between devices in which nothing else ran on the device; None if it has none."""
    replicated_seconds: float | None = None
    """Time of its products that all devices compute alike; None if its programs are unknown or run on one device."""
    widened_seconds: float | None = None
    """Time of operations in float64, although most of what their program is given is narrower; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPlace:
    """A place of the program's thread while devices were idle."""

    where: str
    """`file:line` of the user's."""
    reason: str
    """Why they were, as in `idle`."""
    share: float
    """Share of the devices' time in the sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSample(Event):
    """A sample of where the devices' time goes: a trace of a few steps, taken because of the setting
    `profile_interval`."""

    kind: ClassVar[str] = "profile"

    window_seconds: float
    """How long it was recorded."""
    busy: Mapping[str, float] = field(default_factory=dict)
    """By device, the share of the window in which at least one operation ran on it."""
    functions: tuple[SampledFunction, ...] = ()
    """Most time first. Bounded."""
    operations: tuple[OperationTime, ...] = ()
    """Most time first. Bounded."""
    idle: tuple[IdleTime, ...] = ()
    """Most time first."""
    collective_seconds: float | None = None
    """Time of exchanges between devices, added up over these; None if no operation ran."""
    exposed_seconds: float | None = None
    """Time of exchanges between devices in which nothing else ran on the device."""
    places: tuple[HostPlace, ...] = ()
    """Places of the program's thread while devices were idle, most time first. Bounded."""
    looks: int = 0
    """How often it was looked at."""
    loop: str | None = None
    """The loop whose steps were recorded, if one is known."""
    step_seconds: float | None = None
    """How long its steps took on average before the sample."""
    bytes: int = 0
    """Size of the trace."""
    start_seconds: float = 0.0
    """How long the program may have been held up to begin the trace."""
    stop_seconds: float = 0.0
    """How long the program may have been held up to end the trace."""
    reading_seconds: float = 0.0
    """Processor time to read it, on a thread of jaxobs."""

    @property
    def device_seconds(self) -> float:
        """Seconds of all operations, added up over devices."""
        return sum(spent for each in self.functions for spent in each.seconds.values())

    def step_parts(self) -> dict[str, dict[str, float]]:
        """Returns the seconds of a step on one device by function and category, and idle ones by reason under `IDLE`.

        Empty if no loop is known.
        """
        if not self.busy or not self.window_seconds or self.step_seconds is None:
            return {}
        scale = self.step_seconds / (self.window_seconds * len(self.busy))
        parts = {
            each.function: {name: spent * scale for name, spent in each.seconds.items()} for each in self.functions
        }
        parts[IDLE] = {each.reason: each.seconds * scale for each in self.idle}
        return parts


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopBaseline:
    """The figures of a loop's first samples, to compare later ones with."""

    loop: str
    samples: int
    step_seconds: float
    """How long a step took: the median."""
    most_step_seconds: float
    """The longest."""
    parts: Mapping[str, Mapping[str, float]]
    """See `ProfileSample.step_parts`: the medians."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileState:
    """The figures of all samples."""

    samples: int
    window_seconds: float
    """Recorded in all."""
    device_seconds: Mapping[str, Mapping[str, float]]
    """By function and category."""
    exposed_seconds: Mapping[str, float]
    """By function that exchanges data between devices."""
    busy: Mapping[str, float]
    """By device, in the latest sample."""
    latest: tuple[ProfileSample, ...] = ()
    """The latest samples, the oldest first. Bounded."""
    baselines: tuple[LoopBaseline, ...] = ()
    """Baselines of loops with enough samples. Bounded."""


def median_parts(samples: Sequence[ProfileSample]) -> dict[str, dict[str, float]]:
    """Returns the medians of `ProfileSample.step_parts`; what a sample does not have took no time in it."""
    all_parts = [each.step_parts() for each in samples]
    names = {(function, name) for parts in all_parts for function, each in parts.items() for name in each}
    found: dict[str, dict[str, float]] = {}
    for function, name in sorted(names):
        times = [parts.get(function, {}).get(name, 0.0) for parts in all_parts]
        found.setdefault(function, {})[name] = statistics.median(times)
    return found
