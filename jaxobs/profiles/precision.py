"""Number formats of a program: where it computes in float64 without having been given any."""

from __future__ import annotations

from collections.abc import Iterator

from jaxobs.internals.xplane.modules import Array, Instruction, Module

WIDE = frozenset({"f64", "c128"})
_MOST_SHARE = 0.5
"""Share of a program's floating-point inputs, by bytes: with more of them in float64, its author wants it."""


def is_given_narrow(module: Module) -> bool:
    """Whether a program has floating-point inputs, and most of them are narrower than float64."""
    entry = module.computations.get(module.entry)
    given = [
        array
        for each in (entry.instructions.values() if entry is not None else ())
        if each.opcode == "parameter"
        for array in each.arrays
        if array.dtype.startswith(("f", "bf", "c"))
    ]
    wide = sum(each.bytes for each in given if each.dtype in WIDE)
    return bool(given) and wide < _MOST_SHARE * sum(each.bytes for each in given)


def is_wide(instruction: Instruction, module: Module) -> bool:
    """Whether an instruction computes arrays in float64; scalars don't count."""
    return any(each.dtype in WIDE and each.elements > 1 for each in _computed(instruction, module))


def _computed(instruction: Instruction, module: Module) -> Iterator[Array]:
    yield from instruction.arrays
    for number in instruction.called if instruction.opcode == "fusion" else ():
        inner = module.computations.get(number)
        for each in inner.instructions.values() if inner is not None else ():
            yield from each.arrays
