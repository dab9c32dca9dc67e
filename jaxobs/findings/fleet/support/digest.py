"""Digests: how far a process is, how fast, and the order of its programs as one hash, as it reports the others."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from jaxobs.base import json_lines, threads

MOST_PROCESSES = 1024
"""Processes with a higher index neither tell nor are asked."""
MOST_PROGRAMS = 20_000
"""Programs of one process whose order is known; later ones are not compared."""
MOST_LISTED = 64
"""The latest programs that a process says by name, so that others can say where they differ."""
MOST_NAME = 120
MOST_FIELD = 8_192
MOST_TEXT = 2**18
MOST_FIGURE = 1e15
LEAST_SECONDS = 1e-9
"""No step takes less; others divide by it."""

Program = tuple[str, str]
"""A function and the fingerprint of what it was lowered to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """A process at one moment, small enough to be sent every few seconds."""

    process: int
    tick: int
    """Grows with each digest."""
    host: str = ""
    pid: int = 0
    programs: int = 0
    """Programs so far that span several processes."""
    chain: str = ""
    """Hash of these programs in their order."""
    loop: str = ""
    """The function or loop whose calls are its steps."""
    found: bool = False
    """Whether the program does not mark its steps, and the calls of a function stand for them."""
    exact: bool = True
    """Whether `steps` counts all of them, and those before its latest program too."""
    steps: int = 0
    usual: float | None = None
    """Usual seconds from step to step; None as long as too few were seen."""
    typical: float | None = None
    """The median time from step to step, which pauses do not change; None where single steps are not seen."""
    looks: int = 0
    """Number of looks that `usual` spans."""
    idle: float = 0.0
    """Seconds since its step count last grew."""
    waiting: float | None = None
    """Share of the last looks at the main thread at which it was inside JAX; None as long as there were too few."""
    waiting_in_steps: float | None = None
    """`waiting` without the looks during pauses, which are longer than a step; None as long as there were too few."""
    line: str = ""
    """`file:line` where the main thread was most often when it was not."""
    inside: bool = False
    """Whether the main thread is inside JAX now."""
    at: str = ""
    """`file:line` of the program's own code where it is now, or that has called JAX."""
    address: str = ""
    """`host:port` of its endpoint; empty where it serves none."""

    def encode(self) -> str:
        """Returns the digest as JSON."""
        return json.dumps(dataclasses.asdict(self), separators=(",", ":"))


def decode(text: str) -> Digest | None:
    """The digest that a process sent; None where it is of another version of jaxobs that says other things."""
    if len(text) > MOST_TEXT:
        return None
    try:
        body = json_lines.loads(text)
        found = Digest(**{name: value for name, value in body.items() if name in _KINDS})
    except (ValueError, TypeError, AttributeError):
        return None
    if not all(_fits(kind, getattr(found, name)) for name, kind in _KINDS.items()):
        return None
    return found if found.usual is None or found.usual > LEAST_SECONDS else None


_KINDS = {each.name: str(each.type) for each in dataclasses.fields(Digest)}


def _fits(kind: str, value: object) -> bool:
    """Returns whether a value is of the type of its field, and of a size that arithmetic and a sentence can take."""
    if kind == "str":
        return isinstance(value, str) and len(value) <= MOST_FIELD
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "float | None" and value is None:
        return True
    kinds = (int,) if kind == "int" else (int, float)
    return type(value) in kinds and isinstance(value, int | float) and 0 <= value < MOST_FIGURE


@dataclass(frozen=True, slots=True)
class Listed:
    """The latest programs of a process by name."""

    first: int
    """Number of programs that came before them."""
    programs: tuple[Program, ...]

    def encode(self) -> str:
        """Returns the list as JSON."""
        return json.dumps([self.first, *self.programs], separators=(",", ":"))


def decode_listed(text: str) -> Listed | None:
    """The programs that a process sent; None where they are not understood."""
    if len(text) > MOST_TEXT:
        return None
    try:
        first, *programs = json_lines.loads(text)
        told = tuple((str(name)[:MOST_FIELD], str(fingerprint)[:MOST_FIELD]) for name, fingerprint in programs)
    except (ValueError, TypeError):
        return None
    return Listed(first, told[:MOST_LISTED]) if _fits("int", first) else None


class Programs:
    """The programs of this process that span several, in the order in which they first came up.

    One that comes again, compiled ahead and then once more by its call, or after caches were emptied, was there before.
    Several threads may add, others read.
    """

    def __init__(self) -> None:
        self._lock = threads.Lock()
        self._known: set[Program] = set()
        self._programs: list[Program] = []
        self._chains = [""]
        """After so many programs."""

    def add(self, function: str, fingerprint: str) -> None:
        """Takes in the next program."""
        program = function[:MOST_NAME], fingerprint
        with self._lock:
            if program in self._known or len(self._programs) >= MOST_PROGRAMS:
                return
            self._known.add(program)
            told = "\0".join((self._chains[-1], *program))
            self._chains.append(hashlib.sha256(told.encode(errors="replace")).hexdigest()[:16])
            self._programs.append(program)

    @property
    def count(self) -> int:
        """Number of programs."""
        return len(self._programs)

    def chain(self, count: int) -> str:
        """Hash of the first so many."""
        return self._chains[count]

    def differ(self, other: Digest) -> bool:
        """Whether another process is known to have had other programs or another order; not where it is ahead."""
        return other.programs <= len(self._programs) and self._chains[other.programs] != other.chain

    def listed(self) -> Listed:
        """The latest of them."""
        first = max(0, len(self._programs) - MOST_LISTED)
        return Listed(first, tuple(self._programs[first:]))

    def all(self) -> Sequence[Program]:
        """All that are known."""
        return tuple(self._programs)
