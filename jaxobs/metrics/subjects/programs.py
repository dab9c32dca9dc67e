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
    Metric(
        name="jax_program_memory_bytes", kind="gauge", labels=("function", "section"), unit="bytes",
        values=(("section", MEMORY_SECTIONS),), read=_programs(lambda p: [((k,), v) for k, v in p.memory.items()]),
        help="Memory of a function's latest program on one device, according to the compiler.",
    ),
    Metric(
        name="jax_program_flops", kind="gauge", labels=("function",),
        read=_programs(lambda p: [((), p.flops)]),
        help="Floating-point operations of one execution of a function's latest program on one device.",
    ),
    Metric(
        name="jax_program_instructions", kind="gauge", labels=("function", "kind"),
        values=(("kind", INSTRUCTION_KINDS),),
        read=_programs(lambda p: [((k,), v) for k, v in (p.instructions or {}).items()]),
        help="Instructions of a function's latest program after optimization; a fusion's contents belong to it.",
    ),
    Metric(
        name="jax_executables", kind="gauge", read=lambda s: [] if s.executables is None else [((), s.executables)],
        help="Number of loaded compiled programs.",
    ),
)  # fmt: skip
