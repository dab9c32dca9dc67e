"""Conditions in lowered programs that `jax.vmap` made selections of, so that all of their branches are computed.

Under `vmap`, a `lax.cond` or `lax.switch` whose condition differs between elements computes all branches for all. JAX
leaves a mark: it selects each operand of a branch from twice the same array, of which one stops gradients.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jaxobs.internals.programs import MAIN
from jaxobs.internals.source_files import is_jax, is_plumbing, shown

MOST_OPERATIONS = 20_000
"""Programs with more are not looked at: a microsecond for each, and ten if there is such a condition."""
UNKNOWN_TURNS = 100.0
"""Turns of a loop whose number the program does not tell, except in a branch: the branch's share is the least."""
_FREE = frozenset(
    f"stablehlo.{each}" for each in ("broadcast_in_dim", "constant", "iota", "reshape", "return", "slice")
)
"""Operations that compute nothing."""
_SELECTING = _FREE | {f"stablehlo.{each}" for each in ("compare", "convert", "select")}
"""Operations of which the selection itself consists."""
_DEAR = frozenset(
    f"stablehlo.{each}"
    for each in (
        "atan2", "cbrt", "cosine", "divide", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic",
        "power", "remainder", "rsqrt", "sine", "sqrt", "tan", "tanh",
    )
)  # fmt: skip
_DEAR_TIMES = 8.0
"""Additions that take as long as such an operation."""
_FRAME = re.compile(r'"((?:[^"\\]|\\.)*)"\("((?:[^"\\]|\\.)+)":(\d+):')
"""Function, file and line of each call in an operation's location, the innermost first."""


class Selected(NamedTuple):
    """The condition that may waste most of a program's operations, by the fields of `ProgramState`."""

    select_site: str | None = None
    select_branch: str = ""
    select_share: float = 0.0


def selected(module: Any) -> Selected:
    """Returns the condition whose branches are all computed and may waste most operations."""
    if module is None or not _is_marked(module):
        return Selected()
    whole = _Costs(module).function(MAIN)
    if not whole.wasted:
        return Selected()
    site, wasted = max(whole.wasted.items(), key=lambda each: each[1].low)
    total = whole.high - wasted.high + wasted.low
    return Selected(site, wasted.branch, wasted.low / total)


def _is_marked(module: Any) -> bool:
    from jax._src.lib.mlir import ir

    found, left = False, MOST_OPERATIONS

    def see(operation: Any) -> Any:
        nonlocal found, left
        left -= 1
        found = found or (operation.name == "stablehlo.select" and _is_mark(operation))
        return ir.WalkResult.ADVANCE if left > 0 else ir.WalkResult.INTERRUPT

    module.operation.walk(see)
    return found and left > 0


def _is_mark(select: Any) -> bool:
    return bool(select.operands[1] == select.operands[2])


@dataclass(slots=True)
class _Wasted:
    low: float
    """Operations, with one turn of each loop whose turns are unknown."""
    high: float
    """Operations, with `UNKNOWN_TURNS` of these."""
    branch: str


@dataclass(slots=True)
class _Cost:
    low: float = 0.0
    high: float = 0.0
    wasted: dict[str, _Wasted] = field(default_factory=dict)
    """By the place of the condition."""

    def add(self, other: _Cost, times: float = 1.0, most: float | None = None) -> None:
        most = times if most is None else most
        self.low += times * other.low
        self.high += most * other.high
        for site, each in other.wasted.items():
            known = self.wasted.setdefault(site, _Wasted(0.0, 0.0, each.branch))
            known.low += most * each.low
            known.high += most * each.high


class _Costs:
    """Operations of the functions of a module."""

    def __init__(self, module: Any) -> None:
        named = (each for each in module.body.operations if "sym_name" in each.attributes)
        self._functions = {each.attributes["sym_name"].value: each.operation for each in named}
        self._known: dict[str, _Cost] = {}

    def function(self, name: str) -> _Cost:
        """Returns what a call of a function costs."""
        if name not in self._known:
            self._known[name] = _Cost()  # a function does not call itself
            operation = self._functions.get(name)
            if operation is not None:
                self._known[name] = self._block(operation.regions[0].blocks[0])
        return self._known[name]

    def _block(self, block: Any) -> _Cost:
        operations = [view.operation for view in block.operations]
        costs = [self._operation(each) for each in operations]
        total = _Cost()
        for cost in costs:
            total.add(cost)
        for site, branches in _conditions(operations):
            sums = []
            for members in branches:
                branch = _Cost()
                for member in members:
                    branch.add(costs[member])
                sums.append((branch, members))
            dearest, members = max(sums, key=lambda each: each[0].low)
            cheapest = min((branch for branch, _ in sums), key=lambda each: each.low)
            low, high = (sum(getattr(each, side) for each, _ in sums) for side in ("low", "high"))
            if dearest.low > 0:
                name = _most_at([(operations[member], costs[member].low) for member in members])
                wasted = total.wasted.setdefault(site, _Wasted(0.0, 0.0, name))
                wasted.low += low - cheapest.low
                wasted.high += high - cheapest.high
        return total

    def _operation(self, operation: Any) -> _Cost:
        name, cost = operation.name, _Cost()
        if name in ("func.call", "call"):
            cost.add(self.function(operation.attributes["callee"].value))
        elif name == "stablehlo.while":
            turns = _turns(operation)
            body = self._block(operation.regions[1].blocks[0])
            cost.add(body, 1.0 if turns is None else turns, UNKNOWN_TURNS if turns is None else turns)
        elif name == "stablehlo.case":
            regions = [self._block(region.blocks[0]) for region in operation.regions]
            cost.add(max(regions, key=lambda each: each.high, default=cost))
        elif name not in _FREE:
            cost.low = cost.high = _elements(operation)
        return cost


def _elements(operation: Any) -> float:
    """Returns the operations on single numbers that an operation consists of, roughly."""
    made = sum((math.prod(_shape(each.type)) for each in operation.results), 0.0)
    given = [_shape(each.type) for each in operation.operands]
    if operation.name == "stablehlo.dot_general":
        # A batch of b products of n x k by k x m: left b n k, right b k m, result b n m.
        return 2.0 * math.sqrt(made * math.prod(given[0]) * math.prod(given[1]))
    if operation.name == "stablehlo.convolution":
        return 2.0 * made * math.prod(given[1]) / max(given[1], default=1)  # for each output, without its channels
    if operation.name == "stablehlo.custom_call":  # a decomposition of matrices, as a rule
        return max([made, *(math.prod(each) * max(each, default=1) for each in given)])
    if operation.name in ("stablehlo.reduce", "stablehlo.sort"):
        return max([made, *map(math.prod, given)])
    return made * (_DEAR_TIMES if operation.name in _DEAR or operation.name.startswith("chlo.") else 1.0)


def _shape(kind: Any) -> list[int]:
    shape = getattr(kind, "shape", None)
    if shape is None:
        from jax._src.lib.mlir import ir

        shape = ir.RankedTensorType(kind).shape if ir.RankedTensorType.isinstance(kind) else (0,)
    return [max(0, each) for each in shape]


def _turns(loop: Any) -> float | None:
    """Returns how often a loop turns that counts up to a constant; None if that is not what it does."""
    condition = loop.regions[0].blocks[0]
    compares = [each.operation for each in condition.operations if each.operation.name == "stablehlo.compare"]
    if len(compares) != 1:
        return None
    counted, limit = compares[0].operands
    end = _constant(limit)
    number = next((number for number, each in enumerate(condition.arguments) if each == counted), None)
    if end is None or number is None:
        return None
    start = _constant(loop.operands[number])
    return max(0.0, end - start) if start is not None else None


def _constant(value: Any) -> float | None:
    owner = getattr(value, "owner", None)
    operation: Any = getattr(owner, "operation", owner)
    if getattr(operation, "name", "") != "stablehlo.constant":
        return None
    found = re.fullmatch(r"dense<(-?\d+)> : .*", str(operation.attributes["value"]))
    return None if found is None else float(found[1])


def _conditions(operations: list[Any]) -> Iterator[tuple[str, list[list[int]]]]:
    """Yields the place of each condition of a block, and the numbers of the operations of each of its branches.

    The operations of a branch follow the selections of its operands; the results of all branches are selected last.
    """
    marks = [number for number, each in enumerate(operations) if each.name == "stablehlo.select" and _is_mark(each)]
    if not marks:
        return
    places = {number: _place(operations[number])[1] for number in range(marks[0], len(operations))}
    for site in dict.fromkeys(places[number] for number in marks):
        branches: list[list[int]] = []
        for number, place in places.items():
            selects = place == site and operations[number].name == "stablehlo.select"
            if number in marks and selects and (not branches or branches[-1]):
                branches.append([])
            elif selects and number not in marks and branches and site is not None:
                yield site, [*branches, *([[]] if len(branches) == 1 else [])]
                branches = []
            elif branches and operations[number].name not in (_SELECTING if place == site else _FREE):
                branches[-1].append(number)


def _most_at(operations: list[tuple[Any, float]]) -> str:
    """Returns the function and line of the user that most of the operations belong to; empty if unknown."""
    found: dict[str, float] = {}
    for operation, cost in operations:
        function, place = _place(operation)
        if place is not None:
            name = function.rpartition(".")[2]
            name = place if "<" in name else f"`{name}` at {place}"
            found[name] = found.get(name, 0.0) + cost
    return max(found, key=lambda each: found[each], default="")


def _place(operation: Any) -> tuple[str, str | None]:
    """Returns the innermost of the user's functions that made an operation, and `file:line` in it; None if unknown."""
    for function, file, line in _FRAME.findall(str(operation.location)):
        if not is_jax(file) and not is_plumbing(file):
            return function, f"{shown(file)}:{line}"
    return "", None
