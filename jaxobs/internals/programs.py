"""Lowered programs: one short hash for each, the same wherever the program is, and what repeats in them."""

from __future__ import annotations

import hashlib
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from jaxobs.internals.executables import devices


def fingerprint(module: Any) -> str | None:
    """Short hash of a lowered program without its source locations: equal wherever the program is."""
    return identify(module).fingerprint


class Identity(NamedTuple):
    """How a lowered program is recognized."""

    fingerprint: str | None = None
    in_key: bool = False
    """Whether the keys of JAX's persistent cache are made of the very same bytes."""
    size: int = 0
    """Bytes of the program without its source locations."""


def identify(module: Any) -> Identity:
    """Returns the fingerprint of a lowered program, and what it was made of."""
    if module is None:
        return Identity()
    try:
        program, in_key = _without_locations(module)
    except (ImportError, AttributeError, ValueError):  # slower by far, but the same everywhere too
        program, in_key = module.operation.get_asm(enable_debug_info=False).encode(), False
    return Identity(hashlib.sha256(program).hexdigest()[:12], in_key, len(program))


def _without_locations(module: Any) -> tuple[bytes, bool]:
    """Bytecode of a copy that was stripped of locations, as JAX makes it for the keys of its persistent cache."""
    from jax._src.lib.mlir import passmanager

    with module.context:
        copy = module.operation.clone().operation
        strip = passmanager.PassManager.parse("builtin.module(strip-debuginfo)")
        strip.enable_verifier(False)
        strip.run(copy)
        program = _bytecode(copy)
        if _POINTERS in program:
            _remove_pointers(copy)
            return _bytecode(copy), False
    return program, _KERNELS not in program


def _bytecode(operation: Any) -> bytes:
    output = io.BytesIO()
    operation.write_bytecode(output)
    return output.getvalue()


_POINTERS = b"CustomSPMDPartitioning"
_KERNELS = b"tpu_custom_call"  # JAX 0.12 strips the kernels' own locations too


def _remove_pointers(operation: Any) -> None:
    """Removes what differs from process to process: a custom partitioning is called by its address."""
    from jax._src.lib.mlir import ir

    def remove(each: Any) -> Any:
        if "call_target_name" in each.attributes and each.attributes["call_target_name"].value.encode() == _POINTERS:
            each.attributes["backend_config"] = ir.StringAttr.get("")
        return ir.WalkResult.ADVANCE

    operation.walk(remove)


def spans_processes(module: Any, executable: Any) -> bool:
    """Returns whether a program runs on devices of other processes too, so that all of them have to run it."""
    here = len(devices(executable))
    if module is None or not here:
        return False
    attributes = module.operation.attributes
    count = 1
    for name in ("mhlo.num_partitions", "mhlo.num_replicas"):
        if name in attributes:
            count *= int(attributes[name].value)
    return count > here


def result_shapes(module: Any) -> set[tuple[int, ...]]:
    """Returns the shapes of what a lowered program returns."""
    for function in module.body.operations if module is not None else ():
        if "sym_name" in function.attributes and function.attributes["sym_name"].value == _MAIN:
            results = function.attributes["function_type"].value.results
            return {tuple(each.shape) for each in results if hasattr(each, "shape")}
    return set()


def is_small(module: Any) -> bool:
    """Returns whether a program has at most `FEW_OPERATIONS`: nearly all bytes of a large one are then constants.

    A constant whose elements are all equal takes a few bytes.
    """
    operations = _inside(module.operation) if module is not None else ()
    return sum(1 for _ in itertools.islice(operations, FEW_OPERATIONS + 1)) <= FEW_OPERATIONS


def _inside(operation: Any) -> Iterator[Any]:
    for block in (block for region in operation.regions for block in region.blocks):
        for view in block.operations:
            yield view
            yield from _inside(view.operation)


FEW_OPERATIONS = 1_000
_MAIN = "main"
MOST_OPERATIONS = 200_000
"""Bound on what is looked at, which takes a second or two; the rest of a larger program is left out."""
LEAST_REPEATS = 4
LEAST_COVERED = 0.5
"""Share of the program's operations that the repetitions make up."""
_MOST_PERIODS = 16
_LOOKED_AT = 8
"""Operations in a row by which a place is recognized."""
_CALLS = frozenset({"func.call", "call"})
_NUMBERED = re.compile(r"(_\d+)+$")


def repeated(module: Any) -> dict[str, int]:
    """Returns the block of operations that a program repeats most: `operations` in it, and how many `times` in a row.

    Empty if none makes up most of the program. The operations of functions that it calls count at each call. Takes time
    in proportion to the program: 10 µs for an operation.
    """
    if module is None:
        return {}
    functions = _Functions(module)
    found: tuple[int, dict[str, int]] = (0, {})
    covered = 0
    for name, blocks in functions.blocks.items():
        calls = functions.calls(name)
        for block in blocks if calls else ():
            sizes = [functions.size(callee) for _, callee in block]
            (times, start, period), repeats = _repetition([token for token, _ in block])
            size = sum(sizes[start : start + period])
            covered += calls * sum(itertools.compress(sizes, repeats))
            if calls * times * size > found[0]:
                found = calls * times * size, {"operations": size, "times": times}
    return found[1] if covered >= LEAST_COVERED * functions.size(_MAIN) else {}


_Operation = tuple[int, "str | None"]
"""A number that is equal for operations of one kind, and the function that it calls."""


class _Functions:
    """The functions of a module: the operations of each block in order, and who calls whom."""

    def __init__(self, module: Any) -> None:
        self.blocks: dict[str, list[list[_Operation]]] = {}
        self._sizes: dict[str, int] = {}
        self._calls: dict[str, int] = {_MAIN: 1}
        self._callers: dict[str, Counter[str]] = {}
        self._kinds: dict[tuple[str, str, str], int] = {}
        self._left = MOST_OPERATIONS
        for function in module.body.operations:
            if "sym_name" in function.attributes:
                name = function.attributes["sym_name"].value
                self.blocks[name] = list(self._blocks(name, function.operation))

    def _blocks(self, function: str, operation: Any) -> Iterator[list[_Operation]]:
        """Yields the operations of each block inside an operation."""
        for block in (block for region in operation.regions for block in region.blocks):
            found: list[_Operation] = []
            for view in block.operations:
                inner, self._left = view.operation, self._left - 1
                if self._left < 0:
                    break
                if inner.name.endswith((".constant", ".return")):
                    continue
                called = inner.attributes["callee"].value if inner.name in _CALLS else None
                if called is not None:
                    self._callers.setdefault(called, Counter())[function] += 1
                results = inner.results
                kind = (inner.name, _NUMBERED.sub("", called or ""), str(results[0].type) if len(results) else "")
                found.append((self._kinds.setdefault(kind, len(self._kinds)), called))
                if len(inner.regions):
                    yield from self._blocks(function, inner)
            yield found

    def size(self, function: str | None) -> int:
        """Operations of a function with those that it calls; 1 for what calls none."""
        if function not in self.blocks:
            return 1
        if function not in self._sizes:
            self._sizes[function] = 1  # a function does not call itself
            self._sizes[function] = sum(self.size(each) for block in self.blocks[function] for _, each in block)
        return self._sizes[function]

    def calls(self, function: str) -> int:
        """Returns how often the program runs through a function, each body of a loop once."""
        if function not in self._calls:
            self._calls[function] = 0
            callers = self._callers.get(function, Counter())
            self._calls[function] = sum(times * self.calls(caller) for caller, times in callers.items())
        return self._calls[function]


def _repetition(tokens: Sequence[int]) -> tuple[tuple[int, int, int], bytearray]:
    """Returns how often the block that covers most is repeated in a row, its start and length; and what any one covers.

    A block's length is one of the usual distances between places that look alike.
    """
    last: dict[int, int] = {}
    distances: Counter[int] = Counter()
    for place in range(len(tokens) - _LOOKED_AT + 1):
        alike = hash(tuple(tokens[place : place + _LOOKED_AT]))
        if alike in last:
            distances[place - last[alike]] += 1
        last[alike] = place
    best, covered = (0, 0, 0), bytearray(len(tokens))
    for period, _ in distances.most_common(_MOST_PERIODS):
        start = 0
        for place in range(len(tokens) - period + 1):
            if place + period < len(tokens) and tokens[place] == tokens[place + period]:
                continue
            times = (place - start) // period + 1
            if times >= LEAST_REPEATS:
                covered[start : start + times * period] = b"\1" * (times * period)
                # The shorter one where both cover the same.
                if (times * period, -period) > (best[0] * best[2], -best[2]):
                    best = (times, start, period)
            start = place + 1
    return best, covered
