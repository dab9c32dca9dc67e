"""The whole state at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxobs.facts.accelerators import AcceleratorState
from jaxobs.facts.compilations import CacheState, OpenCompilation
from jaxobs.facts.errors import OutOfMemory
from jaxobs.facts.findings import Finding
from jaxobs.facts.functions import FunctionState, Histogram
from jaxobs.facts.inputs import InputState
from jaxobs.facts.loops import LoopState
from jaxobs.facts.memory import ArrayGroup, DeviceState, Headroom
from jaxobs.facts.numbers import WatchedState
from jaxobs.facts.process import ObserverState, ProcessState
from jaxobs.facts.profile_samples import ProfileState
from jaxobs.facts.requests import EngineState, RouteState
from jaxobs.facts.transfers import FallbackState, TransferState
from jaxobs.facts.verdicts import Verdict
from jaxobs.facts.wall import TimeState


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The whole state at one moment."""

    time: float
    process: ProcessState
    functions: tuple[FunctionState, ...]
    phases: Mapping[str, Histogram]
    """Seconds by phase over all functions."""
    in_progress: tuple[OpenCompilation, ...]
    devices: tuple[DeviceState, ...]
    cache: CacheState
    observer: ObserverState
    last_sequence: int
    """Sequence number of the newest event: ask `/api/v1/events?since=` for what comes after."""
    unfinished: tuple[OpenCompilation, ...] = ()
    """Compilations that an exception ended within the last minute, if nothing has compiled on their thread since."""
    findings: tuple[Finding, ...] = ()
    """Patterns over time, each as it is now, the latest first."""
    accelerators: tuple[AcceleratorState, ...] = ()
    """The devices as their driver sees them; empty until JAX uses them, and where the driver is out of reach."""
    last_out_of_memory: OutOfMemory | None = None
    """The latest report of a call that ran out of memory."""
    array_groups: tuple[ArrayGroup, ...] = ()
    """The largest groups of live arrays, as last sampled, the largest first."""
    headroom: Headroom | None = None
    """On the fullest device, as last sampled; None if no allocator reports its limit."""
    executables: int | None = None
    """Compiled programs that are loaded, in all backends; None until one is initialized."""
    wall: TimeState | None = None
    """Every second of this process in one category; None in data read back from an event log without it."""
    loops: tuple[LoopState, ...] = ()
    """Loops of steps, in the order in which they began."""
    routes: tuple[RouteState, ...] = ()
    """Requests by route; empty if the process reports none."""
    requests_in_flight: int | None = None
    """Requests that have started and not ended; None if the process reports none."""
    engines: tuple[EngineState, ...] = ()
    """Inference engines that report their state; empty if none does."""
    inputs: tuple[InputState, ...] = ()
    """Inputs that go through `jaxobs.data`, by name."""
    watched: tuple[WatchedState, ...] = ()
    """Values that go through `jaxobs.watch`, by name."""
    verdict: Verdict | None = None
    """The findings by what they cost, the worst first; None if nobody has judged."""
    transfers: tuple[TransferState, ...] = ()
    """Lines that move arrays between host and devices, the most bytes first; empty unless `transfers` is set."""
    fallbacks: tuple[FallbackState, ...] = ()
    """Operators that torch_xla ran on the CPU, those that ran most first."""
    host: Mapping[str, float] = field(default_factory=dict)
    """The process on its host, and what its container allows, by metric; empty until sampled, or unless on Linux."""
    profile: ProfileState | None = None
    """The devices' time, by samples; None unless `profile_interval` is set and one was taken."""

    def __repr__(self) -> str:
        """Short, for a prompt: all the fields would fill the screen. `dataclasses.asdict` gives them."""
        compiled = sum(each.compiled for each in self.functions)
        told = (
            f"{self.process.program or 'python'}, pid {self.process.pid}: {compiled} compilation{'s' * (compiled != 1)}"
        )
        headline = "" if self.verdict is None else f"; {self.verdict.verdict}: {self.verdict.headline}"
        return f"<Snapshot of {told}{headline}>"
