"""Contents of an optimized program, read from its text (HLO): instructions by kind, and bytes of collectives.

Only what runs by itself counts. Instructions inside a fusion and inside the function that a reduction applies are part
of it; parameters, constants, tuples and bitcasts do nothing. What is in a loop counts once.
"""

import math
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

STRETCH = 0.001
"""Seconds for which reading keeps the interpreter to itself."""

_COLLECTIVES = frozenset(
    {
        "all-gather", "all-reduce", "all-to-all", "collective-broadcast", "collective-permute", "ragged-all-to-all",
        "reduce-scatter",
    }
)  # fmt: skip
_NOTHING = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast"})
_HEAD = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) .*\{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?[\w.\-]+ = (.+?) ([a-z][a-z0-9\-]*)\(")
_PART = re.compile(r"\b(calls|to_apply)=%?([\w.\-]+)")
_ARRAY = re.compile(r"\b(pred|[a-z]+[0-9]+[a-z0-9]*)\[([0-9,]*)\]")
_BITS = re.compile(r"[0-9]+")
_NUMBERS = re.compile(r"(?:\.(?:\d+|clone|remat\d*))+$")
_TARGET = re.compile(r'custom_call_target="([^"]{1,200})"')


@dataclass(slots=True)
class _Computation:
    kinds: Counter[str] = field(default_factory=Counter)
    collectives: Counter[str] = field(default_factory=Counter)


def lines(text: str) -> Iterator[str]:
    """Yields a text's lines in place, offering the interpreter to other threads every millisecond."""
    since = time.perf_counter()
    start, left = 0, 64
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + 1
        left -= 1
        if left <= 0:
            left = 64
            if time.perf_counter() - since > STRETCH:
                time.sleep(0)
                since = time.perf_counter()


def read(text: str) -> tuple[dict[str, int], dict[str, int]]:
    """Instructions by kind (`facts.functions.INSTRUCTION_KINDS`), and bytes of the results of collectives by operation.

    Takes about 15 ms for each megabyte, and offers the interpreter to other threads every millisecond.
    """
    computations: dict[str, _Computation] = {}
    parts: set[str] = set()
    current = _Computation()
    for line in lines(text):
        found = _INSTRUCTION.match(line)
        if found is not None:
            _take(current, found[1], found[2])
            parts.update(_parts(found[2], line))
        elif line.endswith("{") and (head := _HEAD.match(line)) is not None:
            current = computations.setdefault(head[1], _Computation())
    kinds: Counter[str] = Counter()
    collectives: Counter[str] = Counter()
    for name, each in computations.items():
        if name not in parts:
            kinds.update(each.kinds)
            collectives.update(each.collectives)
    return {kind: kinds[kind] for kind in ("fusion", "custom_call", "collective", "other")}, dict(collectives)


def _take(computation: _Computation, result: str, opcode: str) -> None:
    if opcode in _NOTHING or opcode.endswith(("-done", "-update")):
        return
    started = opcode.removesuffix("-start")
    if started in _COLLECTIVES:
        computation.kinds["collective"] += 1
        computation.collectives[started] += _bytes(result, pair=opcode != started and started != "all-reduce")
    elif opcode == "fusion":
        computation.kinds["fusion"] += 1
    elif opcode == "custom-call":
        computation.kinds["custom_call"] += 1
    elif opcode != "async-start":
        computation.kinds["other"] += 1


def _parts(opcode: str, line: str) -> list[str]:
    """Computations that are part of this instruction: not those that are called, run asynchronously or looped."""
    if opcode in ("call", "async-start", "while", "conditional") or not ("calls=" in line or "to_apply=" in line):
        return []
    return [name for _, name in _PART.findall(line)]


def _bytes(result: str, *, pair: bool) -> int:
    """Bytes of a result; of a `pair`, as started operations have, `(operands, results, ...)`, of the results alone."""
    if pair and result.startswith("(("):
        _, _, result = result.partition("), ")
    elif pair and result.startswith("("):
        return math.ceil(sum(_sizes(result)[1:2]))
    return math.ceil(sum(_sizes(result)))


def _sizes(result: str) -> list[float]:
    return [math.prod(int(n) for n in sizes.split(",") if n) * _width(kind) for kind, sizes in _ARRAY.findall(result)]


def _width(kind: str) -> float:
    """Bytes of one element: `pred` one, else the bits in the type's name."""
    if kind == "pred":
        return 1
    bits = _BITS.search(kind)
    return int(bits[0]) / 8 if bits is not None else 0


def named(text: str) -> Counter[tuple[str, str]]:
    """Returns how many instructions run by themselves, by kind and name.

    The name of a fusion is without its number, that of a custom call is its target, and others have their operation.
    """
    computations: dict[str, Counter[tuple[str, str]]] = {}
    parts: set[str] = set()
    current = computations.setdefault("", Counter())
    for line in lines(text):
        found = _INSTRUCTION.match(line)
        if found is not None:
            opcode = found[2].removesuffix("-start")
            if opcode in _COLLECTIVES:
                current["collective", opcode] += 1
            elif opcode == "fusion":
                current["fusion", _NUMBERS.sub("", line.partition(" = ")[0].split()[-1].lstrip("%"))] += 1
            elif opcode == "custom-call":
                target = _TARGET.search(line)
                current["custom call", "" if target is None else target[1]] += 1
            elif opcode not in _NOTHING and not opcode.endswith(("-done", "-update")):
                current["operation", opcode] += 1
            parts.update(_parts(found[2], line))
        elif line.endswith("{") and (head := _HEAD.match(line)) is not None:
            current = computations.setdefault(head[1], Counter())
    return sum((each for name, each in computations.items() if name not in parts), Counter[tuple[str, str]]())
