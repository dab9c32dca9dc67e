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
from collections.abc import Iterable, Mapping
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

DEVICE_SKIPPED = ("collected", "deleted", "late", "overlapped", "unready")
"""Why a sampled call has no device time. Before its output was there, the program let go of it or donated it; it was
seen too late to tell the time; it ran beside the call before it; its output did not come within ten minutes."""

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

THROTTLE_REASONS = (
    "sw_power_cap",
    "hw_slowdown",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "sync_boost",
)
"""Why a busy accelerator runs slower than it could."""

TIME_CATEGORIES = (
    "init",
    "trace",
    "compile",
    "cache_load",
    "input_wait",
    "step",
    "checkpoint",
    "eval",
    "transfer",
    "idle",
)
"""What every second of a process is counted as, exactly one of them."""

DIRECTIONS = ("device_to_host", "host_to_device")
"""Where a transfer goes."""

REQUEST_COLD = ("true", "false", "unknown")
"""Whether something compiled, or was loaded from the persistent cache, inside a request; unknown where jaxobs was not
installed, and so saw no compilations."""

REQUEST_OUTCOMES = ("ok", "client_error", "error", "cancelled")
"""How a request ended: status below 400, below 500, from 500 on or an exception, given up by the client."""

CHECKPOINT_OPERATIONS = ("save", "save_async", "restore", "wait", "phase")
"""What a checkpoint's time was taken by: what held its caller up; all of an asynchronous save, the part in the
background included; reading one; waiting for an earlier asynchronous save; a block of `jaxobs.phase("checkpoint")`."""

MEMORY_SECTIONS = ("argument", "output", "temp", "alias", "code")
"""What a compiled program's memory is made of."""

INSTRUCTION_KINDS = ("fusion", "custom_call", "collective", "other")
"""What an optimised program's instructions are counted as."""

OOM_STAGES = ("start", "compile", "load", "run", "allocate", "unknown")
"""When memory ran out: taking the device, compiling, loading the program, running it, making a single array."""

OOM_CAUSES = (
    "absurd_request",
    "program_too_large",
    "leaked_arrays",
    "replicated_arrays",
    "fragmentation",
    "other_process",
    "executables",
    "live_arrays",
    "host_limit",
    "unknown",
)
"""Why memory ran out, as far as the report can tell."""

INPUT_VERDICTS = ("input", "compute", "mixed")
"""Which side holds a loop up: the input where most of the interval is waited for it, the rest where next to none is."""

DATA_LOOKS = ("constant", "repeating", "random")
"""How data looks that may be no real data: one value throughout, the same batches again, values drawn by chance."""


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
    spans_processes: bool = False
    """Whether it runs on devices of several processes: then each of them has to run it, in the same order."""
    eager: bool = False
    """Whether it is an operation that JAX dispatched by itself, outside any function of the user."""
    transform: str | None = None
    """The transformation whose derived program this is (`linearize`, `transpose`, `batch`), if any."""
    flops: float | None = None
    """Floating-point operations of one execution, by the compiler's own analysis; told of programs that took a second
    to compile, and of all where a test holds a baseline."""
    bytes_accessed: float | None = None
    """Bytes that one execution reads and writes, told like `flops`."""
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
    """Its type, one of those in `jaxobs.patterns` and `jaxobs.leaks`: `recompile_storm`, `array_leak`, ..."""
    function: str
    """As in `Compilation`; `<eager>` for operations outside any function of the user."""
    summary: str
    """One sentence for a person, with the figures."""
    advice: str
    """What to do in this very case."""
    subject: str = ""
    """What it is about inside the function: `batch['image'] dimension 0`, an operation, a call site."""
    count: int = 0
    """Compilations that belong to it; of a leak, samples in which it grew; of an input, batches."""
    seconds: float = 0.0
    """Time that these compilations took, all phases; of an input, the time waited for it."""
    since: float = 0.0
    """Time of the first of them."""
    ended: float | None = None
    """When it was over by itself: what grew, grows no more; None as long as it stands."""
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
    """Arrays with a shard in the device's own memory, each buffer counted once."""
    live_array_bytes: int | None = None
    """Bytes of these shards."""
    high_water_bytes: int | None = None
    """Most bytes known to have been in use within the last minute: the allocator's peak where it grew meanwhile, else
    the largest sample. At least so many were; a short peak below an earlier one can be missed."""
    other_space_bytes: Mapping[str, int] = field(default_factory=dict)
    """Bytes of live arrays in the device's other memories (`pinned_host`, ...), which take none of its own."""
    code_bytes: int | None = None
    """Of the compiled programs that are loaded on it; None where the backend does not say."""
    groups: tuple[ArrayGroup, ...] = ()
    """The largest groups of live arrays on it, the largest first: in the event log, once a minute and at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBuffer:
    """One buffer of a program that did not fit, as the compiler or the runtime lists it."""

    size: int
    operator: str | None = None
    """JAX's name of the operation: `jit(step)/transpose(jvp(Block))/dot_general`."""
    shape: str | None = None
    """As XLA writes it, with the layout: `f32[4096,128]{1,0:T(8,128)}`."""
    unpadded: int | None = None
    padding: int | None = None
    """Bytes that the layout's tiles add."""
    allocation: str | None = None
    """`HLO temp`, `parameter`, ... as told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OomCause:
    """One explanation of an out-of-memory error, with what shows it and what to do."""

    cause: str
    """One of `OOM_CAUSES`."""
    summary: str
    advice: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfMemory(Event):
    """A call that died of memory, with all that was known at that moment. Sizes in bytes."""

    kind: ClassVar[str] = "out_of_memory"

    function: str
    """As in `Compilation`; `<unknown>` where nothing tells."""
    stage: str
    """One of `OOM_STAGES`."""
    error: str
    """The exception's type."""
    message: str
    """Its text, the first 4,000 characters."""
    device: str | None = None
    """The device that is out of memory, as in `DeviceState`; None where several may be."""
    call_site: str | None = None
    """`file:line` in the user's code."""
    signature: str | None = None
    """Types and shapes of the call's arguments, by argument; None where they were out of sight."""
    wanted_bytes: int | None = None
    used_bytes: int | None = None
    free_bytes: int | None = None
    limit_bytes: int | None = None
    exceeded_bytes: int | None = None
    total_bytes: int | None = None
    sections: Mapping[str, int] = field(default_factory=dict)
    """What the failing program consists of, by the error's own text."""
    buffers: tuple[MemoryBuffer, ...] = ()
    """Its largest buffers, by the error's own text."""
    program: Mapping[str, int] = field(default_factory=dict)
    """Bytes of the function's latest compiled program by section (`MEMORY_SECTIONS`)."""
    program_flops: float | None = None
    devices: tuple[DeviceMemory, ...] = ()
    """State of every device at the moment of the error."""
    accelerators: tuple[AcceleratorState, ...] = ()
    """The devices as their driver saw them at the last sample before it, with the processes on them."""
    host: Mapping[str, int] = field(default_factory=dict)
    """The host's memory: `total`, `available`, `resident`, `limit` (of the process or its container)."""
    arrays: tuple[ArrayGroup, ...] = ()
    """The largest groups of live arrays, the largest first."""
    array_shares: tuple[float, ...] = ()
    """Of each of them: its part of the bytes of all live arrays on the device that it fills most, from 0 to 1."""
    compilations: tuple[str, ...] = ()
    """The last compilations before it, the latest first, a line each."""
    samples: tuple[str, ...] = ()
    """The last memory samples before it, the latest first, a line each."""
    versions: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)
    """Variables that govern memory, where set: `XLA_FLAGS`, `XLA_PYTHON_CLIENT_*`, ..."""
    causes: tuple[OomCause, ...] = ()
    """What probably happened, the likeliest first. Empty where the report was left out (see `report`)."""
    report: str | None = None
    """The text file with all of this; None where none was written."""
    seconds: float | None = None
    """Time that it took to collect it; None where it was left out, because such errors came too often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Error(Event):
    """An exception that nothing caught: the end of the program, unless it runs at a prompt.

    Or one of a kind that jaxobs knows, as it leaves an instrumented function; see `uncaught`.
    """

    kind: ClassVar[str] = "error"

    error: str
    """The exception's type."""
    message: str | None = None
    """Its text, the first 2,000 characters; None where values may not be told."""
    call_site: str | None = None
    """`file:line` in the user's code, the innermost."""
    report: str | None = None
    """The text file with the last minutes before it; None where none was written, as at a prompt, which goes on."""
    error_kind: str | None = None
    """What it is by its text, one of `jaxobs.error_texts.KINDS`, whatever its type; None where that is not known."""
    meaning: str | None = None
    """What such an error says, as a sentence for a person."""
    advice: str | None = None
    """What to do about it."""
    function: str | None = None
    """The instrumented function that it left, as in `Compilation`; None where it was seen elsewhere."""
    uncaught: bool = True
    """False where it was seen as it left an instrumented function, and the program may have caught it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action(Event):
    """Something that jaxobs was asked to do: a capture, and what became of it."""

    kind: ClassVar[str] = "action"

    name: str
    """`memory`, `profile`: the last part of `/api/v1/actions/<name>`."""
    origin: str
    """Who asked: `http`, `signal` or `python`."""
    result: str
    """`done`, `refused` (a limit, or one is under way) or `failed`."""
    detail: str | None = None
    """What was captured, or why nothing was, as a sentence for a person."""
    path: str | None = None
    """The file or directory that was written."""
    bytes: int | None = None
    seconds: float | None = None
    """Time that it took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NonFinite(Event):
    """A watched value turned NaN or infinite; told once, until it has been finite again."""

    kind: ClassVar[str] = "nonfinite"

    name: str
    """As given to `jaxobs.watch`; of an error by `jax_debug_nans`, the operation or function that JAX names."""
    what: str
    """`nan`, `inf` or `nan and inf`."""
    source: str = "watch"
    """`watch`, or `debug_nans`: JAX raised an error because `jax_debug_nans` or `jax_debug_infs` is on."""
    path: str = ""
    """Which leaf of a pytree, as `['layer']['w']`: the first that is not finite."""
    step: int | None = None
    """Which call of `watch` with this name it was, from 0."""
    program_step: int | None = None
    """Number of the program's step at that call, from 1, over all its loops; None where it makes none."""
    last_finite_step: int | None = None
    """The latest one before it that was seen to be finite."""
    exact: bool = True
    """Whether every value in between was looked at, so that `step` is the first."""
    nans: int = 0
    """Elements of the leaf that are NaN."""
    infs: int = 0
    """Elements of the leaf that are infinite."""
    size: int = 1
    """Elements of the leaf."""
    dtype: str | None = None
    leaves: int = 1
    """Leaves that are not finite."""
    call_site: str | None = None
    """`file:line` in the user's code: where it is watched, or where the error was raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer(Event):
    """What one line has moved between host and devices so far: told of a new line, when it has grown tenfold, and at
    the end."""

    kind: ClassVar[str] = "transfer"

    site: str
    """As in `TransferState`, like all that follows."""
    direction: str
    count: int
    bytes: int
    seconds: float = 0.0
    waits: int = 0
    wait_seconds: float = 0.0
    shape: tuple[int, ...] = ()
    dtype: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataLeaf:
    """One array of a batch."""

    path: str
    """`['image']`; empty where the batch is one array."""
    shape: tuple[int, ...]
    dtype: str
    looks: str | None = None
    """One of `DATA_LOOKS`; None where nothing speaks for that, or it could not be looked at."""
    detail: str | None = None
    """The same for a person: `like uniform random numbers`, `on a device: not looked at`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataReceipt:
    """What a loop was fed with: types and a fingerprint of the first batches, never their contents."""

    name: str
    """As given to `jaxobs.data`."""
    batches: int
    """How many were looked at."""
    fingerprint: str | None
    """Short hash of bounded samples of them, equal for equal data in equal order; None where all lies on devices."""
    leaves: tuple[DataLeaf, ...]
    """Of the first batch. Bounded."""
    looks: str | None = None
    """One of `DATA_LOOKS` where the batches look like no real data, by their largest array."""
    reason: str | None = None
    """The same as a sentence for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Event):
    """Steps of one loop: those of a sample interval together, and a slow one by itself."""

    kind: ClassVar[str] = "step"

    loop: str
    """Its name, as in `jaxobs.step("train")`."""
    count: int
    """How many steps; 1 where it is a slow one."""
    last: int
    """Number of the last of them in its loop, from 1."""
    seconds: float
    """Their time, all together. See `LoopState` for what counts as a step's."""
    least_seconds: float
    most_seconds: float
    median_seconds: float
    items: float | None = None
    """Samples or tokens in them; None where none were told."""
    compilations: int = 0
    """Executables that were compiled or loaded in this time, by whatever function."""
    slow: bool = False
    """Whether it is one step that took far longer than its loop's usually do; it is in the others' figures as well."""
    reason: str | None = None
    """Of a slow one: what happened in it, as a sentence for a person."""
    standing: Standing | None = None
    """How the whole process stands: in the event log, with the first of these events and then once a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest(Event):
    """What runs here: versions, and the program that was started."""

    kind: ClassVar[str] = "manifest"

    versions: Mapping[str, str]
    program: str | None = None
    """The script or module that was started."""
    process_count: int = 1
    hostname: str | None = None
    """The machine it runs on."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """Variables of XLA, libtpu and NCCL that are set; those of an allow-list, no others."""
    config: Mapping[str, str] = field(default_factory=dict)
    """JAX's options with plain values, whatever set them."""
    commit: str | None = None
    """The commit that the program's directory was at; whether files were changed since is not known."""
    platform: str | None = None
    """JAX's default backend; None until the program has woken it, when the manifest is told again."""
    devices: Mapping[str, int] = field(default_factory=dict)
    """Devices of the default backend in the whole job, by kind."""
    devices_by_process: Mapping[str, int] = field(default_factory=dict)
    """The same by process index."""
    data: tuple[DataReceipt, ...] = ()
    """What `jaxobs.data` has seen of the input. Known after the first batches: the manifest is told again then."""


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
    report: str | None = None
    """The text file with the last minutes; None where none was written, as at a normal end."""
    standing: Standing | None = None
    """How the whole process stood at its end: in the event log."""


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
    error_kinds: Mapping[str, int] = field(default_factory=dict)
    """Of these calls, those whose error is known by its text, by kind (`jaxobs.error_texts.KINDS`)."""
    fastpath_misses: Mapping[str, int] = field(default_factory=dict)
    """Calls that JAX dispatched from Python although nothing compiled, by cause, one of `FASTPATH_CAUSES`."""
    fastpath_reason: str | None = None
    """Why the latest of them was, as a sentence for a person, with what to do."""
    fastpath_watched: bool = False
    """Whether such calls are seen: those of `jax.jit` functions are, where JAX and Python allow it."""
    dispatch: Histogram | None = None
    """Seconds from call to return of instrumented calls, of those that were timed."""
    device: Histogram | None = None
    """Seconds that the device took for such a call, at most, of some that compiled nothing; None until one is known.
    The page on how it works tells what it holds beside the program itself."""
    device_skipped: Mapping[str, int] = field(default_factory=dict)
    """Calls whose device time could not be found out, by reason, one of `DEVICE_SKIPPED`."""
    last_compiled: float | None = None
    last_reason: str | None = None
    program: ProgramState | None = None
    """The latest program; a transformation's (`Compilation.transform`) only where there is no other."""
    out_of_memory: Mapping[str, int] = field(default_factory=dict)
    """Calls that died of memory, by device; `""` where the device is not known."""

    @property
    def compiled(self) -> int:
        """Executables in all."""
        return sum(sum(by_cache.values()) for by_cache in self.compilations.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramState:
    """A compiled program: what one execution takes on one device, by the compiler's own analysis."""

    time: float
    """When it was compiled or loaded."""
    fingerprint: str | None = None
    """Which program: as in `Compilation`."""
    transform: str | None = None
    """As in `Compilation`."""
    flops: float | None = None
    """By the compiler's count, which takes the body of a loop once, and nothing for products that a library makes."""
    all_flops: float | None = None
    """With every turn of its loops and the products of libraries; None until they were read, and where the program's
    text does not tell them."""
    bytes_accessed: float | None = None
    memory: Mapping[str, int] = field(default_factory=dict)
    """Bytes by section, one of `MEMORY_SECTIONS`."""
    instructions: Mapping[str, int] | None = None
    """Instructions of the optimised program by kind, one of `INSTRUCTION_KINDS`; None until they were read, and where
    the program is too large to be read beside the run."""
    collective_bytes: Mapping[str, int] = field(default_factory=dict)
    """Bytes of the results of its collectives on one device, by operation: `{"all-reduce": 1024}`. Each counts once,
    also inside a loop."""

    @property
    def needed(self) -> int | None:
        """Bytes on a device that a call takes beside its arguments: temporaries, and outputs that reuse no argument."""
        return needed(self.memory)


def needed(memory: Mapping[str, int]) -> int | None:
    """Bytes that a program takes beside its arguments: temp + output - alias; None where they are not known."""
    if "temp" not in memory or "output" not in memory:
        return None
    return memory["temp"] + max(0, memory["output"] - memory.get("alias", 0))


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
class ArrayGroup:
    """Live arrays that are alike: one shape, type, sharding and kind of memory."""

    shape: tuple[int, ...]
    """Of the whole array."""
    dtype: str
    sharding: str
    """Device for an array on one, else the partition and the mesh: `P('data', None) over data=4, model=2`."""
    memory_kind: str | None
    """`device`, `pinned_host`, ...; None where JAX does not tell."""
    count: int
    """Arrays; those that only show a shard of another, or share its buffer, do not count."""
    bytes_per_device: Mapping[str, int]
    """Bytes of their shards by device that this process can address."""
    call_sites: Mapping[str, int] = field(default_factory=dict)
    """Lines of the user's code, `file:line`, that made them, and of how many that were looked at; told of arrays that
    pile up, and of all where `array_call_sites` is set."""

    @property
    def key(self) -> tuple[tuple[int, ...], str, str, str | None]:
        """What its arrays have in common."""
        return self.shape, self.dtype, self.sharding, self.memory_kind

    @property
    def bytes(self) -> int:
        """Bytes on all devices of this process together."""
        return sum(self.bytes_per_device.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What a device's memory is in use for; the parts add up to what the allocator has handed out."""

    in_use_bytes: int
    array_bytes: int
    """Of live arrays in the device's own memory."""
    code_bytes: int
    """Of compiled programs; 0 where the backend does not say what they take."""
    gap_bytes: int
    """The rest: temporaries of running programs, what the allocator rounds up, buffers that nobody lists. Negative
    where arrays or code lie outside of what the allocator counts."""


def account(memory: DeviceMemory) -> Account | None:
    """What a device's memory is in use for; None where the allocator or the live arrays are not known."""
    if memory.in_use_bytes is None or memory.live_array_bytes is None:
        return None
    code_bytes = memory.code_bytes or 0
    return Account(
        in_use_bytes=memory.in_use_bytes,
        array_bytes=memory.live_array_bytes,
        code_bytes=code_bytes,
        gap_bytes=memory.in_use_bytes - memory.live_array_bytes - code_bytes,
    )


@dataclass(frozen=True, slots=True)
class Headroom:
    """What is left on the device that has least left."""

    device: str
    bytes: int
    """The allocator's limit less what is in use."""


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
    account: Account | None = None
    """What its memory is in use for; None where the allocator does not tell what is in use."""
    history: tuple[tuple[float, int | None, int | None], ...] = ()
    """Samples, oldest first: time, bytes in use (allocator), bytes of live arrays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorProcess:
    """A process that has memory on an accelerator."""

    pid: int
    """As the driver counts them: in a container it may be another number than the process knows."""
    bytes: int | None
    """None where the driver does not tell."""
    ours: bool | None
    """Whether it is this process; None where our number is not among them, and any of them could be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorState:
    """One accelerator as its driver sees it, whoever uses it. What the driver does not tell is None or absent."""

    time: float
    """When it was read."""
    device: str
    """JAX's name, `gpu:0`, where it is known which one it is; else `nvml:<index>`, and `nvml:<index>/<instance>`."""
    uuid: str
    """Empty for a TPU, which has none."""
    index: int
    """The driver's number of the device."""
    model: str | None = None
    pci_bus_id: str | None = None
    driver_version: str | None = None
    parent: str | None = None
    """UUID of the device that a MIG instance is a part of; None for a whole device."""
    up: bool = True
    """Whether it answered; where not, all figures but counts of what happened are gone."""
    trouble: str | None = None
    """Why it did not answer."""
    utilization: float | None = None
    """Share of the driver's sample period in which a program ran on it."""
    tensorcore_utilization: float | None = None
    """Of a TPU: share of what its matrix units could do; of several cores that are one device, their mean."""
    memory_controller_utilization: float | None = None
    """Share of the driver's sample period in which its memory was read or written."""
    memory_bandwidth_utilization: float | None = None
    """Of a TPU: share of its memory's bandwidth."""
    memory_used_bytes: int | None = None
    """Of all processes; without what the driver keeps back, where the driver tells these apart."""
    memory_total_bytes: int | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    energy_joules: float | None = None
    """Since the driver was loaded."""
    temperature_celsius: int | None = None
    sm_clock_hertz: int | None = None
    memory_clock_hertz: int | None = None
    throttle_reasons: tuple[str, ...] | None = None
    """Why its clocks are not higher, now; `THROTTLE_REASONS` are those that slow a busy device down."""
    slowdown: float | None = None
    """Of a TPU: by which share it is throttled, in tenths."""
    ecc_errors: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """`corrected` and `uncorrected`, each `volatile` (since the driver was loaded) and `aggregate` (ever)."""
    xid_errors: Mapping[str, int] | None = None
    """Errors that the driver reported since jaxobs looks, by Xid code."""
    pcie_bytes: Mapping[str, int] = field(default_factory=dict)
    """`transmit` and `receive`, as the device counts them."""
    nvlink_bytes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By link, `transmit` and `receive`; empty while a link that counted before does not."""
    nvlink_links: int | None = None
    """Links that count now."""
    link_faults: Mapping[str, int] = field(default_factory=dict)
    """Of a TPU: each link between chips, from 0 (healthy) to 10 (unusable)."""
    processes: tuple[AcceleratorProcess, ...] | None = None


def headroom(devices: Iterable[DeviceState]) -> Headroom | None:
    """Limit less what is in use on the device where that is least; None where no allocator tells both."""
    left = [
        Headroom(each.device, each.memory.limit_bytes - each.memory.in_use_bytes)
        for each in devices
        if each.memory is not None and each.memory.limit_bytes is not None and each.memory.in_use_bytes is not None
    ]
    return min(left, key=lambda each: each.bytes, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopState:
    """A loop of steps, by `jaxobs.step`, `jaxobs.steps`, or found as a function that is called again and again.

    A step's time runs from the end of the step before it on its thread to its own: in a steady loop that is what a step
    takes, although a device may finish it later. Evaluations, checkpoints and compilations between two steps are
    neither's; a wait for input is the step's. The first step of a thread has the time of its scope.
    """

    name: str
    found: bool = False
    """Whether it is a function that is called in a loop, and its calls are the steps."""
    steps: int = 0
    """Steps that have ended."""
    steps_counted: bool = True
    """Whether all of them were; where not, `steps` are those that were seen, of a loop that was found."""
    failed: int = 0
    """Steps that an exception ended; they are no steps otherwise."""
    slow: int = 0
    """Steps that took more than three times as long as usual, and at least 0.1 s."""
    items: float | None = None
    """Samples or tokens so far; None where none were told."""
    seconds: Histogram | None = None
    """Times of all steps; None where it was found."""
    ended: float | None = None
    """When the last step ended."""
    recent: tuple[float, ...] = ()
    """Times of the latest steps, the oldest first; the mean of each sample interval where calls are only counted."""
    mean_seconds: float | None = None
    """Over the recent steps, as all that follows: the time for which the rates hold, whatever the host runs ahead."""
    least_seconds: float | None = None
    p50_seconds: float | None = None
    """Percentiles; None where calls are only counted, and below the mean where the host runs ahead and then waits."""
    p90_seconds: float | None = None
    p99_seconds: float | None = None
    steps_per_second: float | None = None
    items_per_second: float | None = None
    calls: Mapping[str, float] = field(default_factory=dict)
    """Calls of functions in a step, by function; of instrumented ones, looked at in some of the steps, unless found."""
    flops: float | None = None
    """Floating-point operations of a step on one device: of these calls, by the compiler's own count."""
    peak_flops: float | None = None
    """FLOP/s of one device, by its data sheet or the setting `peak_flops`."""
    mfu: float | None = None
    """Share of `peak_flops` that the steps use; None where it cannot be known, and when the loop has come to rest."""
    mfu_unknown: str | None = None
    """Why not, as a sentence for a person."""


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


# ---- serving


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCompilation:
    """An executable that was compiled or loaded inside a request: a `Compilation` in short."""

    function: str
    cause: str
    reason: str
    cache: str
    seconds: float
    """All phases together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """One request that is told of: a cold one, or one of the slowest."""

    time: float
    """When it ended."""
    seconds: float
    outcome: str
    """One of `REQUEST_OUTCOMES`."""
    cold: str
    """One of `REQUEST_COLD`."""
    waited: bool = False
    """As in `RouteState`."""
    queue_seconds: float | None = None
    compilations: int = 0
    """Executables that it brought."""
    compiled: tuple[RequestCompilation, ...] = ()
    """The first of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """How long the latest requests of one sort took, in seconds; exact over so many of them."""

    count: int
    """Requests that the figures rest on."""
    p50: float
    p90: float
    p99: float
    longest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteState:
    """The requests of one route that have ended."""

    route: str
    requests: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Requests by `cold`, then by outcome: `{"true": {"ok": 2}, "false": {"ok": 998}}`."""
    seconds: Mapping[str, Histogram] = field(default_factory=dict)
    """Their seconds by `cold`, without the time in a queue."""
    waited: int = 0
    """Requests that compiled nothing, but spent most of their time while something compiled elsewhere in the process,
    ended after it, and took at least twice their route's median once that is known: they waited for its program, or for
    the processor."""
    waited_seconds: float = 0.0
    per_second: float | None = None
    """Requests that ended, a second, over the last minute or the latest 512, whichever is shorter."""
    warm: Latency | None = None
    """Of the latest that neither compiled nor waited: the steady state."""
    cold: Latency | None = None
    """Of the latest cold ones."""
    queued: int = 0
    """Requests whose time in a queue was told."""
    queue_seconds: float = 0.0
    batches: int = 0
    """Requests whose batch was told."""
    batch_used: int = 0
    """Rows of these batches that held something."""
    batch_size: int = 0
    """Rows of these batches."""
    latest_cold: tuple[RequestRecord, ...] = ()
    """With what compiled in them and why, the latest first."""
    slowest: tuple[RequestRecord, ...] = ()
    """Of the latest that compiled nothing, the slowest first."""

    @property
    def total(self) -> int:
        """Requests in all."""
        return sum(sum(by_outcome.values()) for by_outcome in self.requests.values())

    def count(self, *, cold: str | None = None, outcome: str | None = None) -> int:
        """Requests of one sort."""
        return sum(
            number
            for each, by_outcome in self.requests.items() if cold in (None, each)
            for kind, number in by_outcome.items() if outcome in (None, kind)
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class InputState:
    """One input that goes through `jaxobs.data`, over all its epochs."""

    name: str
    batches: int
    """All that it gave, on whichever thread."""
    wait_seconds: float
    """Time that the program's thread waited for batches."""
    elsewhere_batches: int = 0
    """Of the batches, those taken on another thread, as a prefetcher does: nobody is known to have waited for them."""
    elsewhere_seconds: float = 0.0
    """Time that other threads waited for them."""
    intervals: int = 0
    """Latest intervals between batches that the following three are of; 0 until the warm-up is over."""
    mean_wait_seconds: float | None = None
    mean_interval_seconds: float | None = None
    """From one batch to the next: the wait, and what the program does with the batch."""
    share: float | None = None
    """Part of the interval that is waited for input."""
    looks: int = 0
    """How often it was looked whether the devices still had work when a batch came; the latest."""
    hidden: float | None = None
    """Share of these looks in which they had: the wait cost them nothing. None where none was possible."""
    verdict: str | None = None
    """One of `INPUT_VERDICTS`; None until it is known, and where batches are taken on another thread."""
    summary: str = ""
    """The same as a sentence for a person, with the figures, or why it is not known."""
    receipt: DataReceipt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedState:
    """One name given to `jaxobs.watch`."""

    name: str
    calls: int
    checked: int
    """Values that were looked at, whole pytrees counted as one."""
    nonfinite: int
    """Of them, those with a NaN or an infinity."""
    finite: bool | None
    """Whether the latest one looked at is finite; None until one was."""
    step: int | None = None
    """The first call, from 0, with a value that was not finite, since it was finite last or ever."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Values not looked at, by reason: `too_large`, `deleted` (donated meanwhile), `tracing`, `too_many`."""


# ---- host transfers


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferState:
    """One line of the program that moves arrays between host and devices, in one direction."""

    site: str
    """`file:line` in the user's code; `<unknown>` where a library does it on a thread of its own."""
    direction: str
    """One of `DIRECTIONS`."""
    since: float
    """Time of the first."""
    count: int
    """Arrays that were moved. One whose values an earlier read left on the host is not moved again."""
    bytes: int
    """What they hold; of an array that is put on several devices whole, as many times."""
    seconds: float = 0.0
    """Time that the program was held up by them, those that had to be waited for left out."""
    waits: int = 0
    """Arrays that were still being computed when they were read."""
    wait_seconds: float = 0.0
    """Time that the program was held up by these: for the computation, and for the copy after it."""
    shape: tuple[int, ...] = ()
    """Of the latest."""
    dtype: str = ""


# ---- where the time went


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """A run over all its attempts: processes that were started with the same `run_id`, one after the other."""

    id: str
    attempt: int
    """Number of this process in the run, from 1."""
    since: float
    """When the first attempt began."""
    wall_seconds: float
    """From then to now, the time in which none of them ran included."""
    seconds: Mapping[str, float]
    """By category, over all attempts; with `down_seconds` they add up to `wall_seconds`."""
    down_seconds: float
    """Time in which no attempt ran: from the last that is known of one to the start of the next."""
    redone_seconds: float | None
    """Time in steps that an attempt made after its last checkpoint, and so were lost when it ended; None where no
    checkpoint of the run was seen, for then it is not known what was saved."""
    redone_steps: int | None
    unsaved_seconds: float
    """Time in steps since the last checkpoint: what would be lost if it ended now."""
    unsaved_steps: int
    goodput: float | None
    """Share of `wall_seconds` that steps took which were not lost; None before the first step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeState:
    """Where the time of this process went, since it was started: every second in exactly one category."""

    seconds: Mapping[str, float]
    """By category, all of `TIME_CATEGORIES`; as known now, so that one can become less: what passed for a step turned
    out to be a compilation."""
    counted: Mapping[str, float]
    """The same as counters show it: none ever goes down, so that a correction takes some time to come through."""
    category: str
    """What goes on now."""
    wall_seconds: float
    """What `seconds` add up to."""
    started: float
    """When the process was started, in seconds since 1970."""
    steps: int
    """Steps of the thread that is charged."""
    goodput: float | None
    """Share of the time of this process that went into steps; None before the first. See `RunState` for lost work."""
    lost: Mapping[str, float]
    """Seconds that went into anything but steps, by cause, the most first: the categories, and of a run with an id,
    over all attempts, `down` and `redone` as well."""
    checkpoints: Mapping[str, Histogram] = field(default_factory=dict)
    """Seconds of checkpoint operations by `CHECKPOINT_OPERATIONS`."""
    run: RunState | None = None
    """None where no `run_id` is set, and until the backend is awake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a process stands, as far as nothing but its state tells it: the fields of `Snapshot` of the same names.

    For who has the event log only. Receipts of inputs are in the manifest, and not repeated here.
    """

    wall: TimeState | None = None
    loops: tuple[LoopState, ...] = ()
    inputs: tuple[InputState, ...] = ()
    watched: tuple[WatchedState, ...] = ()
    routes: tuple[RouteState, ...] = ()
    transfers: tuple[TransferState, ...] = ()


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
    accelerators: tuple[AcceleratorState, ...] = ()
    """The devices as their driver sees them; empty until JAX uses them, and where the driver is out of reach."""
    last_out_of_memory: OutOfMemory | None = None
    """The latest report of a call that died of memory."""
    array_groups: tuple[ArrayGroup, ...] = ()
    """The largest groups of live arrays, as last sampled, the largest first."""
    headroom: Headroom | None = None
    """On the fullest device, as last sampled; None where no allocator tells its limit."""
    executables: int | None = None
    """Compiled programs that are loaded, in all backends; None until one is awake."""
    wall: TimeState | None = None
    """Every second of this process in one category; None in what is read back from an event log that tells of none."""
    loops: tuple[LoopState, ...] = ()
    """Loops of steps, in the order in which they began."""
    routes: tuple[RouteState, ...] = ()
    """Requests by route; empty where the process tells of none."""
    requests_in_flight: int | None = None
    """Requests that have begun and not ended; None where the process tells of none."""
    inputs: tuple[InputState, ...] = ()
    """What goes through `jaxobs.data`, by name."""
    watched: tuple[WatchedState, ...] = ()
    """What goes through `jaxobs.watch`, by name."""
    transfers: tuple[TransferState, ...] = ()
    """Lines that move arrays between host and devices, the most bytes first; empty unless `transfers` is set."""


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
