"""The functions of a program, the programs they were compiled to, and durations counted in buckets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts in buckets: `counts[i]` observations were at most `bounds[i]`, the last one has no bound."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    """Not cumulative; one longer than `bounds`."""
    sum: float


FASTPATH_CAUSES = (
    "new_signature", "effects", "arguments", "outputs", "configuration", "cache_full", "stuck_entry", "unknown",
)  # fmt: skip
"""Why JAX dispatched a call from Python although nothing compiled. All but the first go on call after call."""

DEVICE_SKIPPED = ("collected", "deleted", "late", "overlapped", "unready")
"""Why a sampled call has no device time. Before its output was there, the program released it or donated it; it was
seen too late to tell the time; it ran next to the call before it; its output did not come within ten minutes."""

MEMORY_SECTIONS = ("argument", "output", "temp", "alias", "code")
"""Sections of a compiled program's memory."""

INSTRUCTION_KINDS = ("fusion", "custom_call", "collective", "other")
"""Kinds of an optimized program's instructions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionState:
    """A function: how often it was called and compiled, and what that cost."""

    name: str
    calls: int | None = None
    """Calls through `jaxobs.jit` or `jaxobs.instrument`; None where only compilations are seen."""
    compilations: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Executables by cause, then by what the cache did: `{"shape": {"miss": 2}}`."""
    sites: Mapping[str, int] = field(default_factory=dict)
    """Executables by the line that called the function, or launched the graph; of the first eight lines."""
    phase_seconds: Mapping[str, float] = field(default_factory=dict)
    phase_counts: Mapping[str, int] = field(default_factory=dict)
    cache: Mapping[str, int] = field(default_factory=dict)
    """Requests to the persistent cache by result."""
    errors: Mapping[str, int] = field(default_factory=dict)
    """Calls that raised, by the exception's type."""
    error_kinds: Mapping[str, int] = field(default_factory=dict)
    """Calls that raised an error known by its text, by kind (`jaxobs.recorder.error_texts.KINDS`)."""
    fastpath_misses: Mapping[str, int] = field(default_factory=dict)
    """Calls that JAX dispatched from Python although nothing compiled, by cause, one of `FASTPATH_CAUSES`."""
    fastpath_reason: str | None = None
    """Why the latest of these calls was, as a sentence for a person, with what to do."""
    fastpath_watched: bool = False
    """Whether such calls are seen: those of `jax.jit` functions are, where JAX and Python allow it."""
    dispatch: Histogram | None = None
    """Seconds from call to return of instrumented calls, of those that were timed."""
    device: Histogram | None = None
    """Upper bound on the seconds that the device took for such a call, for some calls that compiled nothing; None until
    one is known. The page "How it works" lists what it includes besides the program itself."""
    device_skipped: Mapping[str, int] = field(default_factory=dict)
    """Calls whose device time could not be determined, by reason, one of `DEVICE_SKIPPED`."""
    last_compiled: float | None = None
    last_reason: str | None = None
    program: ProgramState | None = None
    """The latest program; a transformation's (`Compilation.transform`) only if there is no other."""
    out_of_memory: Mapping[str, int] = field(default_factory=dict)
    """Calls that ran out of memory, by device; `""` if the device is unknown."""

    @property
    def compiled(self) -> int:
        """Executables in all."""
        return sum(sum(by_cache.values()) for by_cache in self.compilations.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramState:
    """A compiled program: what one execution takes on one device, by the compiler's own analysis."""

    time: float
    """Time of the compilation or of loading."""
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
    """Instructions of the optimized program by kind, one of `INSTRUCTION_KINDS`; None until they were read, and where
    the program is too large to be read next to the run."""
    collective_bytes: Mapping[str, int] = field(default_factory=dict)
    """Bytes of the results of its collectives on one device, by operation: `{"all-reduce": 1024}`. Each counts once,
    also inside a loop."""
    select_site: str | None = None
    """`file:line` of a `lax.cond` or `lax.switch` whose branches are all computed, because `jax.vmap` maps it."""
    select_branch: str = ""
    """Function and line with most operations of its most expensive branch; empty if unknown."""
    select_share: float = 0.0
    """Share of the program's operations that an element which takes its cheapest branch does not need."""

    @property
    def needed(self) -> int | None:
        """Bytes on a device that a call needs besides its arguments: temporaries, and outputs that reuse none."""
        return needed(self.memory)


def needed(memory: Mapping[str, int]) -> int | None:
    """Returns the bytes that a program needs besides its arguments: temp + output - alias; None if unknown."""
    if "temp" not in memory or "output" not in memory:
        return None
    return memory["temp"] + max(0, memory["output"] - memory.get("alias", 0))
