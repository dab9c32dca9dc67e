"""Exceptions that ended a call or the process, and calls that ran out of memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from jaxobs.facts.accelerators import AcceleratorState
from jaxobs.facts.events import Event
from jaxobs.facts.memory import ArrayGroup, DeviceMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Error(Event):
    """An exception that nothing caught: the end of the program, unless it runs at a prompt.

    An error of a kind that jaxobs knows is recorded as it leaves an instrumented function, too; see `uncaught`.
    """

    kind: ClassVar[str] = "error"

    error: str
    """The exception's type."""
    message: str | None = None
    """The exception's text, the first 2,000 characters; None if values must not be recorded."""
    call_site: str | None = None
    """`file:line` in the user's code, the innermost."""
    report: str | None = None
    """The text file with the last minutes before it; None if none was written, as at a prompt or in a notebook."""
    error_kind: str | None = None
    """Kind of the error according to its text, one of `recorder.error_texts.KINDS`, whatever its type; None if
    unknown."""
    meaning: str | None = None
    """A sentence for a person: the meaning of such an error."""
    advice: str | None = None
    """Advice on the error."""
    function: str | None = None
    """The instrumented function that it left, as in `Compilation`; None if it was detected elsewhere."""
    uncaught: bool = True
    """False if it was detected as it left an instrumented function, and the program may have caught it."""


OOM_STAGES = ("start", "compile", "load", "run", "allocate", "unknown")
"""Stage at which memory ran out: acquiring the device, compiling, loading the program, running it, creating a single
array."""

OOM_CAUSES = (
    "absurd_request", "program_too_large", "leaked_arrays", "replicated_arrays", "fragmentation", "other_process",
    "executables", "live_arrays", "host_limit", "unknown",
)  # fmt: skip
"""Why memory ran out, as far as the report can tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBuffer:
    """A buffer of a program that did not fit, as the compiler or the runtime lists it."""

    size: int
    operator: str | None = None
    """JAX's name of the operation: `jit(step)/transpose(jvp(Block))/dot_general`."""
    shape: str | None = None
    """As XLA writes it, with the layout: `f32[4096,128]{1,0:T(8,128)}`."""
    unpadded: int | None = None
    padding: int | None = None
    """Bytes that the layout's tiles add."""
    allocation: str | None = None
    """`HLO temp`, `parameter`, ... as in the error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OomCause:
    """An explanation of an out-of-memory error, with what shows it and what to do."""

    cause: str
    """The cause, one of `OOM_CAUSES`."""
    summary: str
    advice: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfMemory(Event):
    """A call that ran out of memory, with everything known at that moment. Sizes in bytes."""

    kind: ClassVar[str] = "out_of_memory"

    function: str
    """As in `Compilation`; `<unknown>` if it cannot be determined."""
    stage: str
    """The stage, one of `OOM_STAGES`."""
    error: str
    """The exception's type."""
    message: str
    """The exception's text, the first 4,000 characters."""
    device: str | None = None
    """The device that is out of memory, as in `DeviceState`; None if several may be."""
    call_site: str | None = None
    """`file:line` in the user's code."""
    signature: str | None = None
    """Types and shapes of the call's arguments, by argument; None if they were not accessible."""
    wanted_bytes: int | None = None
    used_bytes: int | None = None
    free_bytes: int | None = None
    limit_bytes: int | None = None
    exceeded_bytes: int | None = None
    total_bytes: int | None = None
    sections: Mapping[str, int] = field(default_factory=dict)
    """The composition of the failing program, according to the error's text."""
    buffers: tuple[MemoryBuffer, ...] = ()
    """The largest buffers of the failing program, according to the error's text."""
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
    """Share of each of these groups of the bytes of all live arrays on the device where it is largest, from 0 to 1."""
    compilations: tuple[str, ...] = ()
    """The last compilations before it, latest first, one line each."""
    samples: tuple[str, ...] = ()
    """The last memory samples before it, latest first, one line each."""
    versions: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)
    """Variables that govern memory, if set: `XLA_FLAGS`, `XLA_PYTHON_CLIENT_*`, ..."""
    causes: tuple[OomCause, ...] = ()
    """Probable causes, the most likely first. Empty if the report was left out (see `report`)."""
    report: str | None = None
    """The text file with all of this; None if none was written."""
    seconds: float | None = None
    """Time to collect it; None if it was left out because such errors came too often."""
