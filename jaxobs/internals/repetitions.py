"""Repetitions in lowered programs, as an unrolled loop leaves them, and the loop in the source that made them."""

from __future__ import annotations

import ast
import contextlib
import itertools
import linecache
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jaxobs.internals.programs import MAIN
from jaxobs.internals.source_files import is_jax, is_plumbing, shown

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
_FRAME = re.compile(r'"\("((?:[^"\\]|\\.)+)":(\d+):')
"""File and line of each call in an operation's location, the innermost first."""
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOCATED = 256
"""Operations of a block whose locations are read."""
_MOST_LINES = 20_000


def repeated(module: Any, called_at: str | None = None) -> tuple[dict[str, int], str | None]:
    """Returns the block that a program, called at `file:line`, repeats most in a row, and the loop that repeats it.

    A mapping describes the block, by the `operations` in it and how many `times` it is there; the mapping is empty if
    repetitions make up less than half of the program. The operations of functions that it calls count at each call. The
    loop is `file:line` in the user's source; None if there is none around the block. Takes time in proportion to the
    program: 10 µs for an operation.
    """
    if module is None:
        return {}, None
    functions = _Functions(module)
    most, covered = 0, 0
    found, loop = dict[str, int](), iter(())
    for name, blocks in functions.blocks.items():
        calls = functions.calls(name)
        for operations, block in blocks if calls else ():
            sizes = [functions.size(callee) for _, callee in operations]
            (times, start, period), repeats = _repetition([token for token, _ in operations])
            size = sum(sizes[start : start + period])
            covered += calls * sum(itertools.compress(sizes, repeats))
            if calls * times * size > most:
                most, found = calls * times * size, {"operations": size, "times": times}
                loop = itertools.islice(_counted(block), start, start + period)
    if not found or covered < LEAST_COVERED * functions.size(MAIN):
        return {}, None
    return found, _loop(loop, called_at)


_Operation = tuple[int, "str | None"]
"""A number that is equal for operations of one kind, and the function that it calls."""


class _Functions:
    """The functions of a module: the operations of each block in order, and who calls whom."""

    def __init__(self, module: Any) -> None:
        self.blocks: dict[str, list[tuple[list[_Operation], Any]]] = {}
        self._sizes: dict[str, int] = {}
        self._calls: dict[str, int] = {MAIN: 1}
        self._callers: dict[str, Counter[str]] = {}
        self._kinds: dict[tuple[str, str, str], int] = {}
        self._left = MOST_OPERATIONS
        for function in module.body.operations:
            if "sym_name" in function.attributes:
                name = function.attributes["sym_name"].value
                self.blocks[name] = list(self._blocks(name, function.operation))

    def _blocks(self, function: str, operation: Any) -> Iterator[tuple[list[_Operation], Any]]:
        """Yields the operations of each block inside an operation, and the block itself."""
        for block in (block for region in operation.regions for block in region.blocks):
            found: list[_Operation] = []
            for inner in _counted(block):
                self._left -= 1
                if self._left < 0:
                    break
                called = inner.attributes["callee"].value if inner.name in _CALLS else None
                if called is not None:
                    self._callers.setdefault(called, Counter())[function] += 1
                results = inner.results
                kind = (inner.name, _NUMBERED.sub("", called or ""), str(results[0].type) if len(results) else "")
                found.append((self._kinds.setdefault(kind, len(self._kinds)), called))
                if len(inner.regions):
                    yield from self._blocks(function, inner)
            yield found, block

    def size(self, function: str | None) -> int:
        """Operations of a function with those that it calls; 1 for what calls none."""
        if function not in self.blocks:
            return 1
        if function not in self._sizes:
            self._sizes[function] = 1  # a function does not call itself
            self._sizes[function] = sum(self.size(each) for block, _ in self.blocks[function] for _, each in block)
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


def _counted(block: Any) -> Iterator[Any]:
    """Yields the operations of a block that do something."""
    for view in block.operations:
        if not view.operation.name.endswith((".constant", ".return")):
            yield view.operation


def _loop(operations: Iterable[Any], called_at: str | None) -> str | None:
    """Returns `file:line` of the loop in the user's source around most of these operations, the inner one of two."""
    sources: dict[str, _Source] = {}
    around: Counter[tuple[str, int]] = Counter()
    for operation in itertools.islice(operations, _LOCATED):
        calls = [(file, int(line)) for file, line in _FRAME.findall(str(operation.location))]
        inside = itertools.takewhile(lambda call: f"{shown(call[0])}:{call[1]}" != called_at, calls)
        found: dict[tuple[str, int], None] = {}  # each once, the innermost first
        for file, line in inside:
            if not is_jax(file) and not is_plumbing(file):
                sources.setdefault(file, _Source(file))
                found |= dict.fromkeys((file, start) for start in sources[file].loops(line))
        around.update([*found])
    # `max` takes the first of several that are around equally many.
    best = max(around, key=lambda each: around[each], default=None)
    return None if best is None else f"{shown(best[0])}:{best[1]}"


class _Source:
    """First and last lines of the functions and loops in a source; none if it cannot be read."""

    def __init__(self, file: str) -> None:
        # Reading a pipe or a terminal would take what is the program's; a cell of a notebook has no file.
        source = linecache.getlines(file) if file in linecache.cache or os.path.isfile(file) else []
        nodes: list[ast.AST] = []
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            nodes = list(ast.walk(ast.parse("".join(source if len(source) <= _MOST_LINES else ()))))
        self._functions = [_span(each) for each in nodes if isinstance(each, _FUNCTIONS)]
        self._loops = sorted((_span(each) for each in nodes if isinstance(each, _LOOPS)), reverse=True)

    def loops(self, line: int) -> list[int]:
        """Returns the first lines of the loops around a line in its function, the innermost first."""
        begins = max((start for start, end in self._functions if start <= line <= end), default=0)
        return [start for start, end in self._loops if begins <= start <= line <= end]


def _span(node: Any) -> tuple[int, int]:
    return node.lineno, node.end_lineno
