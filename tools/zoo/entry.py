"""Declarations of an entry of the zoo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tools.environments import ZOO, Row


@dataclass(frozen=True)
class Finding:
    """A finding that is expected."""

    id: str
    function: str = ""
    """The last part of its function's name; empty where that does not matter."""


@dataclass(frozen=True)
class Loop:
    """The loop in which a program trains."""

    function: str
    """The last part of the name."""
    steps: int
    within: int = 1
    """By how many the number may be off."""


@dataclass(frozen=True)
class FirstTry:
    """Outcome of the first run of jaxobs on a program, before jaxobs or the entry was changed for it."""

    outcome: Literal["right", "half", "wrong"]
    """`half`: the verdict and the main finding are right, and something else is not."""
    note: str = ""
    """Statements that were not right."""


@dataclass(frozen=True)
class Entry:
    """A program, and what someone who knows it would say of it."""

    projects: tuple[str, ...]
    """Distributions whose versions the table shows; the first is the one whose program it is."""
    says: str
    """For a person to read: what the program does well and badly."""
    causes: Mapping[str, Mapping[str, int]]
    """By the last part of a function's name, how often it compiles for each cause. Every other function compiles for
    the first time only, eager operations aside."""
    findings: tuple[Finding, ...] = ()
    """All of them."""
    loop: Loop | None = None
    verdict: str = ""
    """`fix`, `watch` or `ok`; empty if nobody wrote it down before the first run."""
    first_try: FirstTry | None = None
    """None for a program of which no record was kept."""
    nonfinite: bool = False
    """Whether a value of interest becomes NaN or infinite."""
    processes: int = 1
    row: Row = ZOO
    variables: Mapping[str, str] = field(default_factory=dict)
    """Settings of jaxobs that the program needs beyond the defaults."""
    marked: bool = True
    """False for a program that runs the main module of another project, which has no marks and logs times. Then
    only the time of compiling is compared, numbers in the output may differ, and so may lines on stderr."""
    differs: Mapping[str, str] = field(default_factory=dict)
    """Known differences: by key, the reason why jaxobs says something else. Checked in both directions."""
