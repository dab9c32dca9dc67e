"""Compiled programs."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from operator import itemgetter

from jaxobs.facts.functions import INSTRUCTION_KINDS, MEMORY_SECTIONS, ProgramState
from jaxobs.facts.snapshot import Snapshot
from jaxobs.metrics.metric import Labels, Metric, Read, Value, per

MOST_PROGRAMS = 7
"""Functions whose program has series, at most ten each: those that take most memory. The snapshot has all."""


def _largest(snapshot: Snapshot) -> list[tuple[str, ProgramState]]:
    def size(known: tuple[str, ProgramState]) -> float:
        return sum(known[1].memory.get(section, 0) for section in ("argument", "output", "temp"))

    known = [(each.name, each.program) for each in snapshot.functions if each.program is not None]
    return heapq.nlargest(MOST_PROGRAMS, known, key=size)


def _programs(read: Callable[[ProgramState], Iterable[tuple[Labels, Value | None]]]) -> Read:
    return per(_largest, itemgetter(0), lambda known: read(known[1]))


METRICS = (
    Metric("jax_program_memory_bytes",
           "Memory of a function's latest program on one device, according to the compiler.",
           _programs(lambda p: [((k,), v) for k, v in p.memory.items()]), ("function", "section"),
           values=(("section", MEMORY_SECTIONS),)),
    Metric("jax_program_flops",
           "Floating-point operations of one execution of a function's latest program on one device.",
           _programs(lambda p: [((), p.flops)]), ("function",)),
    Metric("jax_program_instructions",
           "Instructions of a function's latest program after optimization; a fusion's contents belong to it.",
           _programs(lambda p: [((k,), v) for k, v in (p.instructions or {}).items()]), ("function", "kind"),
           values=(("kind", INSTRUCTION_KINDS),)),
    Metric("jax_executables", "Number of loaded compiled programs.",
           lambda s: [] if s.executables is None else [((), s.executables)]),
)  # fmt: skip
