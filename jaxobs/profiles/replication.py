"""Which instructions of a program compute the same thing on each of its devices.

After XLA has divided a program, its parameters say whether a device has all of them or a part. What is computed from
whole values alone, and not from the device's own number, is the same everywhere: a single device would do. A sum over
all devices is whole again. One over some of them counts as a part, also where it happens to be whole: along the other
axes of a mesh.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from jaxobs.base import pacing
from jaxobs.internals.xplane.modules import Computation, Instruction, Module

_Whole: TypeAlias = "bool | tuple[bool, ...]"
"""Whether a value is the same on all devices; of a tuple, by element."""

_OWN = frozenset({
    "collective-permute", "infeed", "partition-id", "recv", "reduce-scatter", "replica-id", "rng", "all-to-all",
    "ragged-all-to-all", "rng-get-and-update-state",
})  # fmt: skip
"""Operations whose result differs on each device, whatever it is made of."""
_UNITED = frozenset({"all-gather", "all-reduce", "collective-broadcast"})
_RUNS = frozenset({"call", "async-start"})
_MOST_TURNS = 64
_MOST_LOOKS = 1_000_000
"""At instructions: one that is called in many places is looked at in each."""


class _TooManyLooksError(Exception):
    """The program is too large to find out."""


def replicated(module: Module) -> set[str]:
    """Returns the names of the instructions that compute the same on all devices; none where it runs on one."""
    if module.partitions < 2 or module.entry not in module.computations:
        return set()
    found = _Marks(module)
    try:
        found.run(module.computations[module.entry], module.whole)
    except _TooManyLooksError:
        return set()
    return {name for name, whole in found.known.items() if _all(whole)}


class _Marks:
    """Marks of the instructions that run; one that runs in several places is whole if it is in all."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._deep = 0
        self._left = _MOST_LOOKS
        self.known: dict[str, _Whole] = {}

    def run(self, computation: Computation, given: Sequence[_Whole]) -> _Whole:
        """Returns whether a computation's result is whole, given its parameters."""
        values: dict[int, _Whole] = {}
        self._deep += 1
        for number in _ordered(computation):
            pacing.offer()
            self._left -= 1
            if self._left < 0:
                raise _TooManyLooksError
            each = computation.instructions[number]
            whole = self._of(each, [values.get(operand, False) for operand in each.operands], given)
            values[number] = whole
            self.known[each.name] = _both(self.known[each.name], whole) if each.name in self.known else whole
        self._deep -= 1
        return values.get(computation.root, False)

    def _of(self, instruction: Instruction, operands: list[_Whole], given: Sequence[_Whole]) -> _Whole:
        opcode = instruction.opcode
        plain = opcode.removesuffix("-start").removesuffix("-done")
        if opcode == "parameter":
            return given[instruction.parameter] if instruction.parameter < len(given) else False
        if opcode == "tuple":
            return tuple(map(_all, operands))
        if opcode == "get-tuple-element":
            of = operands[0] if operands else False
            return of if isinstance(of, bool) else instruction.element < len(of) and of[instruction.element]
        if plain in _UNITED:
            return (opcode != plain + "-done" and instruction.whole) or all(map(_all, operands))
        if plain in _OWN or (opcode == "custom-call" and not operands):
            return False
        if opcode == "while":
            return self._loop(instruction, operands)
        if opcode in _RUNS and instruction.called:
            return self._called(instruction.called[0], operands)
        if opcode == "conditional" and operands:
            branches = [
                self._called(called, operands[place + 1 : place + 2])
                for place, called in enumerate(instruction.called)
            ]  # fmt: skip
            made = branches[0] if branches else False
            for each in branches[1:]:
                made = _both(made, each)
            return made if _all(operands[0]) else False
        if opcode in ("bitcast", "copy", "opt-barrier", "copy-start", "copy-done") and len(operands) == 1:
            return operands[0]
        return all(map(_all, operands))

    def _called(self, number: int, operands: Sequence[_Whole]) -> _Whole:
        inner = self._module.computations.get(number)
        return False if inner is None or self._deep > _MOST_TURNS else self.run(inner, operands)

    def _loop(self, instruction: Instruction, operands: list[_Whole]) -> _Whole:
        """Returns whether a loop's values are whole: they are if they are so before the first turn and after each."""
        carried = operands[0] if operands else False
        for _ in range(_MOST_TURNS):
            before = carried
            for called in instruction.called:
                made = self._called(called, [carried])
                if isinstance(made, tuple):
                    carried = _both(carried, made)
            if carried == before:
                return carried
        return False


def _ordered(computation: Computation) -> Iterator[int]:
    """Yields the instructions, each after its operands."""
    done: set[int] = set()
    for number in computation.instructions:
        left = [number]
        while left:
            at = left[-1]
            if at in done or at not in computation.instructions:
                left.pop()
                continue
            missing = [
                each for each in computation.instructions[at].operands
                if each not in done and each in computation.instructions and each not in left
            ]  # fmt: skip
            if missing:
                left.extend(missing)
            else:
                left.pop()
                done.add(at)
                yield at


def _all(whole: _Whole) -> bool:
    return whole if isinstance(whole, bool) else all(whole)


def _both(one: _Whole, other: _Whole) -> _Whole:
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return tuple(a and b for a, b in zip(one, other, strict=True))
    return _all(one) and _all(other)
