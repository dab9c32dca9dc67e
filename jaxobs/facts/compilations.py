"""Compilations: how long each phase took, and why they happened; and the persistent cache that may spare them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from jaxobs.facts.events import Event

EAGER = "<eager>"

OTHER = "<other>"

CAUSES = (
    "first_call", "shape", "dtype", "weak_type", "structure", "static_argument", "sharding", "placement", "layout",
    "jit_options", "context", "new_function", "cache_cleared", "unknown",
)  # fmt: skip
"""Why something compiled: the values of the label and of the field `cause`."""

PHASES = ("trace", "lower", "compile", "cache_load")
"""The phases of a cache miss. A persistent-cache hit has `cache_load` instead of `compile`."""

LONG_SECONDS = 10.0
"""A compilation that took so long is looked at by itself."""
LARGE_CONSTANTS = 2**20
"""Bytes of constants from which on XLA's computing with them explains why a small program compiled so long."""

CACHE_RESULTS = ("miss", "hit", "disabled")
"""Result of a request to the persistent compilation cache: looked and found nothing, loaded, or was not asked."""

UNSAVED = ("disabled", "too_fast", "too_small", "not_writer", "callbacks", "error", "unknown")
"""Why a compiled program was not stored in the persistent cache."""

KEY_PARTS = ("program", "jaxlib", "backend", "flags", "options", "devices", "compression", "custom_hook")
"""Parts of the persistent cache's key, in JAX's order."""


@dataclass(frozen=True, slots=True)
class Change:
    """A difference between a call's signature and the nearest earlier one."""

    path: str
    """The argument as the user wrote it: `batch['image']`; empty for what is no argument."""
    what: str
    """Which property differs: one of the causes."""
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilation(Event):
    """An executable produced by a cache miss: compiled, or loaded from the persistent cache."""

    kind: ClassVar[str] = "compilation"

    function: str
    """`module.qualname`, or JAX's own name if the function object is not accessible."""
    cause: str
    """Why it compiled, one of `CAUSES`."""
    reason: str
    """A sentence for a person: the argument's path, before and after, and what to do."""
    changes: tuple[Change, ...] = ()
    """Every difference from the nearest earlier signature."""
    phases: Mapping[str, float] = field(default_factory=dict)
    """Seconds by phase; a phase that did not run is absent."""
    cache: str = "disabled"
    """Result of the persistent cache, one of `CACHE_RESULTS`."""
    uncached_because: str | None = None
    """Why a compiled program was not stored in the persistent cache (`UNSAVED`); None when it was, or was loaded."""
    uncached_detail: str | None = None
    """A sentence for a person about `uncached_because`, with the margin: its seconds and the threshold, the error's
    text."""
    call_site: str | None = None
    """`file:line` of the call in the user's code; of an installed program, from its package's name on."""
    library_site: str | None = None
    """`library/file.py:line`: the innermost line of an installed library between that call and JAX, if there is one.

    Not of what only hands calls on: NumPy, type checkers, and the wrappers of `eqx.filter_jit` and `nnx.jit`."""
    fingerprint: str | None = None
    """Short hash of the lowered program, equal on every process that compiles the same."""
    spans_processes: bool = False
    """True if the program runs on devices of several processes: then each of them must run it, in the same order."""
    eager: bool = False
    """True for an operation that JAX dispatched on its own, outside any user function."""
    by_rerun: bool = False
    """In a notebook, of the cause `new_function`: whether this is the first such function object in this run of a cell.
    Rerunning a cell is not a mistake of the program."""
    transform: str | None = None
    """The transformation whose derived program this is (`linearize`, `transpose`, `batch`), if any."""
    flops: float | None = None
    """Floating-point operations of one execution, according to the compiler; recorded for programs that took a
    second to compile, and for all programs of a test with a baseline."""
    bytes_accessed: float | None = None
    """Bytes that one execution reads and writes, recorded like `flops`."""
    memory: Mapping[str, int] = field(default_factory=dict)
    """Bytes of the program on one device by section (`MEMORY_SECTIONS`), recorded like `flops`."""
    grown: tuple[str, ...] = ()
    """Arguments whose new size is one step more, and of which a result has the size after that: what is returned comes
    back as the argument of the next call."""
    repeated: Mapping[str, int] = field(default_factory=dict)
    """A block of operations that makes up most of the program, over and over: `operations` in it, and `times`. Recorded
    for programs that took ten seconds to compile; empty if there is none."""
    loop_site: str | None = None
    """`file:line` of the loop in the source whose iterations `repeated` counts; None if unknown."""
    constant_bytes: int = 0
    """Bytes of the arrays that are constants in a program of at most 1,000 operations, such as NumPy arrays that the
    function closes over. Recorded like `repeated`."""
    signature: Mapping[str, Any] | None = None
    """Shapes, types, structure and placement that it was compiled for, to compile it ahead elsewhere; no values.

    Recorded if an event log is written; None if the arguments were not accessible or cannot be recorded.
    """

    @property
    def is_avoidable(self) -> bool:
        """Whether an unrolled loop or large constants explain why the program compiled so long."""
        return bool(self.repeated) or self.constant_bytes >= LARGE_CONSTANTS

    @property
    def long(self) -> bool:
        """Whether all phases together took `LONG_SECONDS`."""
        return sum(self.phases.values()) >= LONG_SECONDS

    @property
    def where(self) -> str | None:
        """Call site with the library's line: `train.py:41, in brax/training/agents/ppo/train.py:512`; None if
        unknown."""
        inside = f"in {self.library_site}" if self.library_site else None
        return ", ".join(filter(None, (self.call_site, inside))) or None


@dataclass(frozen=True, slots=True)
class OpenCompilation:
    """A phase that began and has not ended: the only sign of a compile that is stuck."""

    function: str
    phase: str
    started: float
    thread: str
    began: float | None = None
    """Time at which the first phase of this compilation began; None if that is not known."""
    call_site: str | None = None
    """As in `Compilation`."""
    ended: float | None = None
    """Time at which an exception ended it; None while it lasts."""

    def seconds(self, now: float) -> float:
        """Returns how long the compilation has taken, or had taken when it was ended."""
        begun = self.started if self.began is None else self.began
        return max(0.0, (now if self.ended is None else self.ended) - begun)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLookup(Event):
    """A lookup in the persistent cache."""

    kind: ClassVar[str] = "cache_lookup"

    function: str
    result: str
    """`hit` or `miss`."""
    key: str | None = None
    """JAX's cache key, which is also the entry's file name."""
    seconds: float | None = None
    """Time to read and load the entry; None on a miss."""
    saved_seconds: float | None = None
    """Compile time that the hit saved, minus the time to load: from jaxobs' own record of the compile if there is one,
    otherwise from JAX's, which is in whole seconds."""
    differs: tuple[str, ...] = ()
    """On a miss of what an earlier process had compiled: which parts of the key differ, of `KEY_PARTS`."""
    reason: str | None = None
    """A sentence for a person about the parts that differ; None if no earlier process is known to have compiled it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheState:
    """The persistent cache of this process."""

    enabled: bool
    directory: str | None
    unsaved: Mapping[str, int] = field(default_factory=dict)
    """Compiled programs that were not stored, by reason."""
    saved_seconds: float = 0.0
    bytes: int | None = None
    """Size of all entries on disk; None if the directory is not accessible (off, or in a bucket)."""
    entries: int | None = None
    """Compiled programs on disk."""
    grown_bytes: int | None = None
    """How much it grew since it was first checked."""
