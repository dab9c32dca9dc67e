"""The facts: frozen, plain data. Whoever explains, exports or diagnoses can be fed with facts made by hand.

Two families. An *event* is something that happened (a subclass of `Event`): one line of the event log, one
entry of the ring behind `/api/v1/events`. A *state* is how things stand at a moment: `Snapshot` and what it
is made of, the answer of `/api/v1/snapshot`. Times are seconds since the epoch, durations seconds, sizes bytes.
None means not known or not told by the backend; it never means zero.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

EAGER = "<eager>"
OTHER = "<other>"

CAUSES = (
    "first_call",
    "shape",
    "dtype",
    "weak_type",
    "structure",
    "static_argument",
    "sharding",
    "placement",
    "layout",
    "jit_options",
    "context",
    "new_function",
    "cache_cleared",
    "unknown",
)
"""Why something compiled: the values of the label and of the field `cause`."""

FASTPATH_CAUSES = (
    "new_signature",
    "effects",
    "arguments",
    "outputs",
    "configuration",
    "cache_full",
    "stuck_entry",
    "unknown",
)
"""Why JAX dispatched a call from Python although nothing compiled. All but the first go on call after call."""

PHASES = ("trace", "lower", "compile", "cache_load")
"""The phases of a cache miss. A persistent-cache hit has `cache_load` in the place of `compile`."""

EVENT_KINDS = (
    "manifest",
    "compilation",
    "cache_lookup",
    "out_of_memory",
    "error",
    "step",
    "memory",
    "transfer",
    "nonfinite",
    "finding",
    "action",
    "exit",
)
"""What an event may be: the field `event` of the log, the parameter `kind` of the API."""

CACHE_RESULTS = ("miss", "hit", "disabled")
"""What the persistent compilation cache did: looked and found nothing, loaded, or was not asked."""

UNSAVED = ("disabled", "too_fast", "too_small", "not_writer", "callbacks", "error", "unknown")
"""Why a compiled program was not stored in the persistent cache."""

KEY_PARTS = (
    "program",
    "jaxlib",
    "backend",
    "flags",
    "options",
    "devices",
    "compression",
    "custom_hook",
)
"""What the key of the persistent cache is made of, in JAX's order."""

MEMORY_SECTIONS = ("argument", "output", "temp", "alias", "code")
"""What a compiled program's memory is made of."""


# ----------------------------------------------------------------------------------------------- events


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened, at a time, in a process."""

    kind: ClassVar[str] = ""

    time: float
    """When, in seconds since the epoch."""
    process_index: int = 0
    """JAX's index of the process; 0 where there is one."""
    pid: int = 0
    """Operating system's number of the process."""
    sequence: int = 0
    """Number of the event in this process, from 1, without gaps."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between a call's signature and the nearest earlier one."""

    path: str
    """The argument as the user wrote it: `batch['image']`; empty for what is no argument."""
    what: str
    """Which property differs: one of the causes."""
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilation(Event):
    """An executable that a cache miss brought: compiled, or loaded from the persistent cache."""

    kind: ClassVar[str] = "compilation"

    function: str
    """`module.qualname`, or JAX's own name where the function object is out of sight."""
    cause: str
    """One of `CAUSES`."""
    reason: str
    """One sentence for a person: the argument's path, before and after, and what to do."""
    changes: tuple[Change, ...] = ()
    """Every difference from the nearest earlier signature."""
    phases: Mapping[str, float] = field(default_factory=dict)
    """Seconds by phase; a phase that did not run is absent."""
    cache: str = "disabled"
    """One of `CACHE_RESULTS`."""
    uncached_because: str | None = None
    """Why a compiled program was not stored in the persistent cache (`UNSAVED`); None when it was, or was loaded."""
    uncached_detail: str | None = None
    """The same as a sentence for a person, with the margin: its seconds and the threshold, the error's text."""
    call_site: str | None = None
    """`file:line` of the call in the user's code."""
    fingerprint: str | None = None
    """Short hash of the lowered program, equal on every process that compiles the same."""
    eager: bool = False
    """Whether it is an operation that JAX dispatched by itself, outside any function of the user."""
    transform: str | None = None
    """The transformation whose derived program this is (`linearize`, `transpose`, `batch`), if any."""
    flops: float | None = None
    """Floating-point operations of one execution, by the compiler's own analysis; told of programs that took a second
    to compile, and of all where a test holds a baseline."""
    memory: Mapping[str, int] = field(default_factory=dict)
    """Bytes of the program on one device by section (`MEMORY_SECTIONS`), told like `flops`."""
    signature: Mapping[str, Any] | None = None
    """Shapes, types, structure and placement that it was compiled for, to compile it ahead elsewhere; no values.

    Recorded where an event log is written; None where the arguments were out of sight or cannot be written down.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLookup(Event):
    """One question to the persistent compilation cache."""

    kind: ClassVar[str] = "cache_lookup"

    function: str
    result: str
    """`hit` or `miss`."""
    key: str | None = None
    """JAX's cache key, which is also the entry's file name."""
    seconds: float | None = None
    """Time to read and load the entry; None on a miss."""
    saved_seconds: float | None = None
    """Compile time that the hit saved, less the time to load: from jaxobs' own record of the compile where there is
    one, else from JAX's, which is in whole seconds."""
    differs: tuple[str, ...] = ()
    """On a miss of what an earlier process had compiled: which parts of the key differ, of `KEY_PARTS`."""
    reason: str | None = None
    """The same as a sentence for a person; None where no earlier process is known to have compiled it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(Event):
    """A pattern over time that a person should know of. One that grows is told again, with the same `id`."""

    kind: ClassVar[str] = "finding"

    id: str
    """The same for the same finding: type, function and subject."""
    finding: str
    """Its type, one of those in `jaxobs.patterns`: `recompile_storm`, `unbounded_shapes`, ..."""
    function: str
    """As in `Compilation`; `<eager>` for operations outside any function of the user."""
    summary: str
    """One sentence for a person, with the figures."""
    advice: str
    """What to do in this very case."""
    subject: str = ""
    """What it is about inside the function: `batch['image'] dimension 0`, an operation, a call site."""
    count: int = 0
    """Compilations that belong to it."""
    seconds: float = 0.0
    """Time that these compilations took, all phases."""
    since: float = 0.0
    """Time of the first of them."""
    evidence: tuple[str, ...] = ()
    """Sentences that show it: the latest compilations, with time, call site and change. Bounded."""
    sequences: tuple[int, ...] = ()
    """Numbers of the latest compilation events that belong to it. Bounded."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Figures of its type: the sizes seen, the buckets suggested, the padding that they would cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory(Event):
    """What one device's memory held at a moment."""

    kind: ClassVar[str] = "memory"

    device: str
    in_use_bytes: int | None = None
    peak_bytes: int | None = None
    limit_bytes: int | None = None
    reserved_bytes: int | None = None
    largest_free_block_bytes: int | None = None
    live_arrays: int | None = None
    live_array_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(Event):
    """What runs here: versions, and the program that was started."""

    kind: ClassVar[str] = "manifest"

    versions: Mapping[str, str]
    program: str | None = None
    """The script or module that was started."""
    process_count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit(Event):
    """The last event of a process that could still speak."""

    kind: ClassVar[str] = "exit"

    reason: str
    """`normal`, `exception` or `signal`."""
    detail: str | None = None
    """The exception's type or the signal's name."""
    code: int | None = None
    """The exit code, where it is known."""


# ------------------------------------------------------------------------------------------------ state


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionState:
    """One function: how often it was called and compiled, and what that cost."""

    name: str
    calls: int | None = None
    """Calls through `jaxobs.jit` or `jaxobs.instrument`; None where only compilations are seen."""
    compilations: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Executables by cause, then by what the cache did: `{"shape": {"miss": 2}}`."""
    phase_seconds: Mapping[str, float] = field(default_factory=dict)
    phase_counts: Mapping[str, int] = field(default_factory=dict)
    cache: Mapping[str, int] = field(default_factory=dict)
    """Requests to the persistent cache by result."""
    errors: Mapping[str, int] = field(default_factory=dict)
    """Calls that raised, by the exception's type."""
    fastpath_misses: Mapping[str, int] = field(default_factory=dict)
    """Calls that JAX dispatched from Python although nothing compiled, by cause, one of `FASTPATH_CAUSES`."""
    fastpath_reason: str | None = None
    """Why the latest of them was, as a sentence for a person, with what to do."""
    fastpath_watched: bool = False
    """Whether such calls are seen: those of `jax.jit` functions are, where JAX and Python allow it."""
    dispatch: Histogram | None = None
    """Seconds from call to return of instrumented calls, of those that were timed."""
    last_compiled: float | None = None
    last_reason: str | None = None

    @property
    def compiled(self) -> int:
        """Executables in all."""
        return sum(sum(by_cache.values()) for by_cache in self.compilations.values())


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts in buckets: `counts[i]` observations were at most `bounds[i]`, the last one has no bound."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    """Not cumulative; one longer than `bounds`."""
    sum: float


@dataclass(frozen=True, slots=True)
class OpenCompilation:
    """A phase that began and has not ended: the only sign of a compile that is stuck."""

    function: str
    phase: str
    started: float
    thread: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """One device that this process can address, and the latest sample of its memory."""

    device: str
    """`platform:id`, unique in the job: `gpu:3`."""
    id: int
    platform: str
    device_kind: str
    process_index: int
    pci_bus_id: str | None = None
    memory: DeviceMemory | None = None
    history: tuple[tuple[float, int | None, int | None], ...] = ()
    """Samples, oldest first: time, bytes in use (allocator), bytes of live arrays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessState:
    """The process that is looked at."""

    pid: int
    hostname: str
    program: str | None
    started: float
    """When jaxobs was first used in it."""
    process_index: int
    process_count: int
    versions: Mapping[str, str]
    """jaxobs, python, jax, jaxlib, and the plugins that are installed."""
    platform: str | None
    """JAX's default backend; None until the program has woken it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheState:
    """The persistent compilation cache of this process."""

    enabled: bool
    directory: str | None
    unsaved: Mapping[str, int] = field(default_factory=dict)
    """Compiled programs that were not stored, by reason."""
    saved_seconds: float = 0.0
    bytes: int | None = None
    """Size of all entries on disk; None where the directory is out of sight (off, or in a bucket)."""
    entries: int | None = None
    """Compiled programs on disk."""
    grown_bytes: int | None = None
    """By how much it grew since it was first looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserverState:
    """jaxobs about itself."""

    installed: bool
    capabilities: Mapping[str, bool] = field(default_factory=dict)
    """What this JAX lets us see; False where a release moved what we look at."""
    internal_errors: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    """What a bound cut off, by reason."""
    collect_seconds: float | None = None
    """Time that the latest scrape took."""
    notes: tuple[str, ...] = ()
    """Sentences for a person: listeners removed by somebody and put back, another copy of jaxobs, ..."""


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
    findings: tuple[Finding, ...] = ()
    """Patterns over time, each as it stands now, the latest first."""


def timestamp(seconds: float) -> str:
    """RFC 3339 in UTC, to the microsecond: `2026-01-31T09:15:00.250000Z`."""
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def as_event(event: Event) -> dict[str, Any]:
    """The event as one object of the event log and of `/api/v1/events`: `time` and `event` come first."""
    body: dict[str, Any] = {"time": timestamp(event.time), "event": event.kind}
    kind: Any = type(event)
    for name in _fields(kind):
        if name != "time":
            body[name] = plain(getattr(event, name))
    return body


def plain(value: Any) -> Any:
    """Facts as what JSON knows: dictionaries, lists, texts, numbers."""
    if value is None or type(value) in (str, int, bool):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: plain(getattr(value, name)) for name in _fields(type(value))}
    return value


@functools.cache
def _fields(kind: Any) -> tuple[str, ...]:
    """Names of a fact's fields. There are as many kinds as classes here."""
    return tuple(each.name for each in dataclasses.fields(kind))
