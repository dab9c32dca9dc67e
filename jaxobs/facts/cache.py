"""Lookups and state of the persistent compilation cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from jaxobs.facts.events import Event

CACHE_RESULTS = ("miss", "hit", "disabled")
"""Result of a request to the persistent compilation cache: looked and found nothing, loaded, or was not asked."""

UNSAVED = ("disabled", "too_fast", "too_small", "not_writer", "callbacks", "error", "unknown")
"""Why a compiled program was not stored in the persistent cache."""

KEY_PARTS = ("program", "jaxlib", "backend", "flags", "options", "devices", "compression", "custom_hook")
"""Parts of the persistent cache's key, in JAX's order."""


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
