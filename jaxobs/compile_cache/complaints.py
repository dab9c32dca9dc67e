"""Complaints of a check of a cache directory, and what the check gets.

A `warning` costs compiles or safety now; an `info` is about what will.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxobs.compile_cache.directory import Contents


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """Something to know of a cache directory."""

    kind: str
    severity: str
    """Severity, `warning` or `info`, of `facts.verdicts.SEVERITIES`."""
    summary: str
    """A sentence or two for a person, with the figures."""
    advice: str
    """Advice: what to do about it."""
    files: tuple[Path, ...] = ()
    """The files it is about."""
    removable: bool = False
    """True if the files may be deleted without loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Everything that a directory is judged by, besides its contents."""

    given: str
    """The directory as it was named."""
    writers: Mapping[str, str]
    """Versions of jaxlib by cache key, as far as they are known."""
    now: float
    """Seconds since the epoch."""
    environment: Mapping[str, str]


Check = Callable[[Contents, Setting], Iterator[Complaint]]


def count(number: int, one: str, many: str) -> str:
    """`1 entry`, `2 entries`."""
    return f"{number:,} {one if number == 1 else many}"


def examples(texts: Sequence[str]) -> str:
    """Returns the first three of several texts."""
    return " · ".join(texts[:3]) + (f" · and {len(texts) - 3} more" if len(texts) > 3 else "")


def user() -> int:
    """Returns the number of the user that looks."""
    return os.geteuid() if hasattr(os, "geteuid") else 0
