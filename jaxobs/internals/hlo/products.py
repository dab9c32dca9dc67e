"""Floating-point operations that the compiler's own count leaves out, read from the text of an optimized program (HLO).

The count takes the body of a loop once, however often it runs, so that a model whose layers are scanned seems to do the
work of one; and it takes nothing for matrix products that were handed to a library as custom calls, as on GPUs. Both
are products of matrices, whose operations follow from their shapes: 2 x elements of the result x contracted elements.
"""

import math
import re
from dataclasses import dataclass, field

from jaxobs.internals.hlo import text as hlo_text

_HEAD = re.compile(r"^(?P<entry>ENTRY )?%?(?P<name>[\w.\-]+) .*\{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (.+?) ([a-z][a-z0-9\-]*)\((?:%?([\w.\-]+))?")
_DIMENSIONS = re.compile(r"[a-z]+[0-9a-z]*\[([0-9,]*)\]")
_CONTRACTED = re.compile(r"lhs_contracting_dim(?:s=\{|ensions\":\[)([0-9,\"]*)[\]}]")
_CALLED = re.compile(r"\b(?:calls|to_apply|body|true_computation|false_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"\bbranch_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"([0-9]+)"')
_TARGET = re.compile(r'custom_call_target="([^"]*)"')
_MULTIPLIES = re.compile(
    r"gemm|matmul|dot|conv|dnn|fmha|attention|triton|mosaic|tpu_custom_call|cutlass", re.IGNORECASE
)
_CALLERS = frozenset({"fusion", "call", "while", "conditional", "async-start"})
_MOST = 20_000


@dataclass(slots=True)
class _Computation:
    counted: float = 0.0
    """Operations of its own products that the compiler counts."""
    handed: float = 0.0
    """FLOPs of products that a library computes."""
    strange: bool = False
    """Whether the computation has a product whose operations are unknown: a repeated product, or the library's."""
    opaque: bool = False
    """Whether a kernel in it may multiply, and nothing tells how much."""
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    called: list[tuple[str, float | None]] = field(default_factory=list)
    """Called computations, and how often each is run; None if that is not known."""


@dataclass(slots=True)
class _Sum:
    once: float = 0.0
    repeated: float = 0.0
    handed: float = 0.0
    known: bool = True
    strange: bool = False
    products: bool = False


def left_out(text: str) -> float | None:
    """Operations of one execution that the compiler's count of this program lacks; None if that is not known.

    Takes about as long as `hlo_text.read`, and offers the interpreter to other threads as often.
    """
    computations: dict[str, _Computation] = {}
    entry: str | None = None
    current = _Computation()
    for line in hlo_text.lines(text):
        found = _INSTRUCTION.match(line)
        if found is not None:
            _take(current, line, *found.groups())
        elif line.endswith("{") and (head := _HEAD.match(line)) is not None:
            current = computations.setdefault(head["name"], _Computation())
            entry = head["name"] if head["entry"] else entry
    if entry is None:
        return None
    total = _added(entry, computations, {})
    return total.repeated - total.once + total.handed if total.known else None


def _take(current: _Computation, line: str, name: str, result: str, opcode: str, operand: str | None) -> None:
    sizes = _DIMENSIONS.search(result)
    if sizes is not None:
        current.shapes[name] = tuple(int(n) for n in sizes[1].split(",") if n)
    if opcode == "dot":
        flops = _product(current, line, name, operand)
        current.counted += flops or 0.0
        current.strange |= flops is None
    elif opcode == "convolution":
        current.strange = True
    elif opcode == "custom-call":
        target = _TARGET.search(line)
        if target is not None and _MULTIPLIES.search(target[1]):
            flops = _product(current, line, name, operand) if "matmul" in target[1] or "gemm" in target[1] else None
            current.handed += flops or 0.0
            current.opaque |= flops is None
    elif opcode in _CALLERS:
        times: float | None = 1.0
        if opcode == "while":
            trips = _TRIPS.search(line)
            times = float(trips[1]) if trips is not None else None
        names = _CALLED.findall(line)
        for branches in _BRANCHES.findall(line):
            names += [each.strip().lstrip("%") for each in branches.split(",")]
        current.called += [(each, times) for each in names]


def _product(current: _Computation, line: str, name: str, operand: str | None) -> float | None:
    contracted, shape = _CONTRACTED.search(line), current.shapes.get(operand or "")
    if contracted is None or shape is None or name not in current.shapes:
        return None
    places = [int(n.strip('"')) for n in contracted[1].split(",") if n]
    if any(place >= len(shape) for place in places):
        return None
    return 2.0 * math.prod(current.shapes[name]) * math.prod(shape[place] for place in places)


def _added(name: str, computations: dict[str, _Computation], done: dict[str, _Sum]) -> _Sum:
    """A computation with all that it calls, each worked out once. None calls itself."""
    if name in done:
        return done[name]
    found = computations.get(name)
    if found is None or len(done) > _MOST:
        return _Sum(known=False, products=True)
    total = _Sum(found.counted, found.counted, found.handed, not found.opaque, found.strange)
    total.products = found.strange or found.opaque or found.counted + found.handed > 0
    done[name] = total
    for called, times in found.called:
        inner = _added(called, computations, done)
        if inner.products:
            total.products = True
            total.strange |= inner.strange
            total.known &= inner.known and times is not None and (times == 1.0 or not inner.strange)
            total.once += inner.once
            total.repeated += inner.repeated * (times or 0.0)
            total.handed += inner.handed * (times or 0.0)
    return total
