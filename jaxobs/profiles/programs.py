"""The operations of a trace: category, place in the program, what each computes and moves."""

import contextlib
import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jaxobs.base import pacing
from jaxobs.internals.xplane.modules import Array, Computation, Instruction, Module
from jaxobs.internals.xplane.space import Stats
from jaxobs.profiles import categories, costs, replication

_ROOT = re.compile(r"^(?:jit|pjit|pmap|xmap)\((.*?)\)(?:/|$)")
_PRODUCTS = {"matmul": "dot", "convolution": "convolution"}
_PREFIX = re.compile(r"^(?:jit|pjit|pmap|xmap)_+")
_WIDE = frozenset({"f64", "c128"})
_MOST_SHARE = 0.5
"""Share of a program's floating-point inputs, by bytes: with more of them in float64, its author wants it."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Facts of an operation that are known before it runs. Costs are of one run."""

    category: str
    scope: str | None = None
    source: str | None = None
    flops: float | None = None
    bytes: float | None = None
    dtype: str | None = None
    """Number format of the factors of a product, else of the result."""
    entry: bool = False
    """True if it runs once in each execution of its program."""
    replicated: bool | None = None
    """Whether all devices compute the same; None if nobody knows."""
    widened: bool | None = None
    """True if it computes in float64 in a program whose inputs mostly are narrower; None if nobody knows."""


class Programs:
    """The programs of a trace, looked up by what its events say. What a look-up finds is kept."""

    def __init__(self, programs: Mapping[int, Module]) -> None:
        self._programs = programs
        self._by_name: dict[str, int] = {}
        for number, module in programs.items():
            self._by_name[module.name] = -1 if module.name in self._by_name else number
        self._instructions: dict[int, dict[str, tuple[Instruction, Computation]]] = {}
        self._names: dict[tuple[str, int | None], str] = {}
        self._replicated: dict[int, set[str]] = {}
        self._narrow: dict[int, bool] = {}
        self.known: dict[tuple[str, str, int | None], Operation] = {}
        """Operations that were asked for: by an operation's name, its program's name and number."""

    def operation(self, name: str, module: str, program: int | None, stats: Stats) -> Operation:
        """Returns an operation by its program, else by what the backend says of it, else by its name."""
        key = name, module, program
        if key not in self.known:
            pacing.offer()
            self.known[key] = self._operation(name, module, program, stats)
        return self.known[key]

    def _operation(self, name: str, module: str, program: int | None, stats: Stats) -> Operation:
        found = self._found(module, program)
        if found is not None:
            number, code = found
            known = self._of(number, code).get(name)
            if known is not None:
                described = dataclasses.replace(
                    _described(*known, code),
                    replicated=name in self._alike(number, code),
                    widened=self._given_narrow(number, code) and _is_wide(known[0], code),
                )
                return _with_stats(described, stats)
        scope = _scope(stats)
        hint = _text(stats, "hlo_category")
        category = (categories.of_hint(hint, scope) if hint is not None else None) or categories.of_name(name)
        return _with_stats(Operation(category, scope), stats)

    def _alike(self, number: int, module: Module) -> set[str]:
        if number not in self._replicated:
            self._replicated[number] = replication.replicated(module)
        return self._replicated[number]

    def _given_narrow(self, number: int, module: Module) -> bool:
        if number not in self._narrow:
            self._narrow[number] = _is_given_narrow(module)
        return self._narrow[number]

    def function(self, module: str, program: int | None) -> str:
        """JAX's name for the function whose program this is: `train_step` for `jit_train_step`."""
        key = module, program
        if key not in self._names:
            self._names[key] = self._function(module, program)
        return self._names[key]

    def _function(self, module: str, program: int | None) -> str:
        plain = _PREFIX.sub("", module) or module
        found = self._found(module, program)
        if found is None:
            return plain
        roots: Counter[str] = Counter()
        for computation in found[1].computations.values():
            roots.update(
                root[1] for each in computation.instructions.values() if (root := _ROOT.match(each.scope)) is not None
            )
        # XLA writes `_` for what isn't a letter: a lambda's name is whole in the scopes only.
        same = [name for name, _ in roots.most_common() if re.sub(r"\W", "_", name).strip("_") == plain.strip("_")]
        return same[0] if same else plain

    def _found(self, module: str, program: int | None) -> tuple[int, Module] | None:
        if program is not None and program in self._programs and self._programs[program].name == module:
            return program, self._programs[program]
        number = self._by_name.get(module, -1)
        return (number, self._programs[number]) if number in self._programs else None

    def _of(self, number: int, module: Module) -> dict[str, tuple[Instruction, Computation]]:
        known = self._instructions.get(number)
        if known is None:
            known = self._instructions[number] = {
                each.name: (each, computation)
                for computation in module.computations.values()
                for each in computation.instructions.values()
            }
        return known


def _described(instruction: Instruction, computation: Computation, module: Module) -> Operation:
    inner = _heaviest(instruction, module)
    category = categories.of_instruction(instruction, module)
    flops = moved = None
    if category != "control":
        # A damaged program costs its own figures.
        with contextlib.suppress(ArithmeticError, IndexError, ValueError):
            flops = costs.flops(instruction, computation, module)
            moved = costs.moved(instruction, computation, module)
    speaks = inner if inner is not None and category in _PRODUCTS else instruction
    scope = speaks.scope or (inner.scope if inner is not None else "")
    source = speaks.source or (inner.source if inner is not None else "")
    return Operation(
        category,
        scope or None,
        source or None,
        flops,
        moved,
        _multiplied(instruction, computation, module),
        computation is module.computations.get(module.entry),
    )


def _heaviest(instruction: Instruction, module: Module) -> Instruction | None:
    """Returns the instruction in a fusion that speaks for it: the product in it, else the largest."""
    inner = [
        each
        for number in instruction.called
        if instruction.opcode == "fusion" and (found := module.computations.get(number)) is not None
        for each in found.instructions.values()
        if each.scope
    ]
    return max(
        inner,
        key=lambda each: (each.opcode in _PRODUCTS.values(), sum(array.elements for array in each.arrays)),
        default=None,
    )


def _multiplied(instruction: Instruction, computation: Computation, module: Module) -> str | None:
    """Returns the number format of the first product in an operation."""
    if instruction.opcode in ("dot", "convolution", "custom-call"):
        operand = computation.instructions.get(instruction.operands[0]) if instruction.operands else None
        return operand.arrays[0].dtype if operand is not None and operand.arrays else None
    for number in instruction.called if instruction.opcode == "fusion" else ():
        inner = module.computations.get(number)
        for step in inner.instructions.values() if inner is not None else ():
            if step.opcode in ("dot", "convolution") and inner is not None:
                return _multiplied(step, inner, module)
    return instruction.arrays[0].dtype if instruction.arrays else None


def _with_stats(known: Operation, stats: Stats) -> Operation:
    """With what the backend says itself: of TPUs, costs and the line of the source."""
    flops, moved = stats.get("flops"), stats.get("bytes_accessed")
    source = _text(stats, "source")
    return dataclasses.replace(
        known,
        scope=known.scope or _scope(stats),
        source=known.source or source,
        flops=float(flops) if isinstance(flops, int | float) and flops > 0 else known.flops,
        bytes=float(moved) if isinstance(moved, int | float) and moved > 0 else known.bytes,
    )


def _scope(stats: Stats) -> str | None:
    """Returns the scope that a backend says itself, with the type of the operation behind a colon."""
    return (_text(stats, "tf_op") or "").partition(":")[0] or None


def _text(stats: Stats, name: str) -> str | None:
    value = stats.get(name)
    return value if isinstance(value, str) and value else None


def _is_given_narrow(module: Module) -> bool:
    """Returns whether a program has floating-point inputs, and most of them are narrower than float64."""
    entry = module.computations.get(module.entry)
    given = [
        array
        for each in (entry.instructions.values() if entry is not None else ())
        if each.opcode == "parameter"
        for array in each.arrays
        if array.dtype.startswith(("f", "bf", "c"))
    ]
    wide = sum(each.bytes for each in given if each.dtype in _WIDE)
    return bool(given) and wide < _MOST_SHARE * sum(each.bytes for each in given)


def _is_wide(instruction: Instruction, module: Module) -> bool:
    """Returns whether an instruction computes arrays in float64; scalars don't count."""
    return any(each.dtype in _WIDE and each.elements > 1 for each in _computed(instruction, module))


def _computed(instruction: Instruction, module: Module) -> Iterator[Array]:
    yield from instruction.arrays
    for number in instruction.called if instruction.opcode == "fusion" else ():
        inner = module.computations.get(number)
        for each in inner.instructions.values() if inner is not None else ():
            yield from each.arrays
