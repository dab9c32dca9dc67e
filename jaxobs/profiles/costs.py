"""Floating-point operations and bytes of one run of an instruction, as XLA's own cost analysis counts them.

A product of matrices counts 2 for each multiplication and addition, everything elementwise 1 for each element of the
result, a reduction 1 for each element of its input. What can't be known is `None`.
"""

import math
import re
from collections.abc import Iterable

from jaxobs.internals.xplane.modules import Array, Computation, Instruction, Module, Window

ARITHMETIC = frozenset({
    "abs", "add", "and", "atan2", "cbrt", "ceil", "clamp", "compare", "complex", "convert", "cosine",
    "count-leading-zeros", "divide", "erf", "exponential", "exponential-minus-one", "floor", "imag", "is-finite",
    "log", "log-plus-one", "logistic", "map", "maximum", "minimum", "multiply", "negate", "not", "or", "popcnt",
    "power", "real", "reduce-precision", "remainder", "rng", "rng-bit-generator", "rng-get-and-update-state",
    "round-nearest-afz", "round-nearest-even", "rsqrt", "select", "shift-left", "shift-right-arithmetic",
    "shift-right-logical", "sign", "sine", "sqrt", "stochastic-convert", "subtract", "tan", "tanh", "xor",
})  # fmt: skip
REDUCTIONS = frozenset({"reduce", "reduce-window", "select-and-scatter"})
MOVES = frozenset({
    "copy", "copy-start", "copy-done", "transpose", "reshape", "slice", "dynamic-slice", "dynamic-update-slice",
    "concatenate", "pad", "reverse", "gather", "bitcast-convert",
})  # fmt: skip
FREE = frozenset({
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "add-dependency", "opt-barrier",
    "domain", "get-dimension-size",
})  # fmt: skip
CONTROL = frozenset({"while", "conditional", "call", "async-start", "async-done", "async-update"})
MATMUL_CALL = re.compile(r"gemm|matmul|\bdot\b|\$dot|cublas", re.IGNORECASE)
CONVOLUTION_CALL = re.compile(r"conv", re.IGNORECASE)
_MOST_DEEP = 16
_MOST_PAIRS = 400_000


def flops(instruction: Instruction, computation: Computation, module: Module, deep: int = 0) -> float | None:
    """Floating-point operations of one run; None where it runs others, or if nothing tells."""
    opcode = instruction.opcode
    if opcode in ARITHMETIC:
        return float(_elements(instruction.arrays[:1]))
    if opcode in FREE or opcode in MOVES or opcode in ("broadcast", "iota"):
        return 0.0
    if opcode == "dot":
        return _product(instruction, computation)
    if opcode == "convolution":
        return _convolution(instruction, computation)
    if opcode == "reduce":
        inputs = [_operand(instruction, computation, 0)]
        return float(sum(_elements(each.arrays) for each in inputs if each is not None))
    if opcode == "reduce-window":
        return float(_elements(instruction.arrays[:1]) * math.prod(each.size for each in instruction.windows))
    if opcode == "fusion":
        return _sum(instruction, module, deep)
    if opcode == "custom-call":
        return _call(instruction, computation)
    return None


def _sum(instruction: Instruction, module: Module, deep: int) -> float | None:
    found = 0.0
    for number in instruction.called:
        inner = module.computations.get(number)
        if inner is None or deep > _MOST_DEEP:
            return None
        for step in inner.instructions.values():
            part = flops(step, inner, module, deep + 1)
            if part is None and step.opcode not in ("scatter", "sort", "fft", "select-and-scatter"):
                return None
            found += part or 0.0
    return found


def _product(instruction: Instruction, computation: Computation) -> float | None:
    left = _operand(instruction, computation, 0)
    if left is None or not left.arrays or any(each >= len(left.arrays[0].sizes) for each in instruction.contracted):
        return None
    contracted = math.prod(left.arrays[0].sizes[each] for each in instruction.contracted)
    return 2.0 * _elements(instruction.arrays[:1]) * contracted


def _convolution(instruction: Instruction, computation: Computation) -> float | None:
    """Without what multiplies padding: twice the products of elements that are there."""
    image, kernel = _operand(instruction, computation, 0), _operand(instruction, computation, 1)
    if image is None or kernel is None or not image.arrays or not kernel.arrays or not instruction.arrays:
        return None
    output, sizes = instruction.arrays[0].sizes, kernel.arrays[0].sizes
    spatial = instruction.output_spatial
    if instruction.kernel_output >= len(sizes) or len(spatial) != len(instruction.windows):
        return None
    if any(each >= len(output) for each in spatial) or len(instruction.input_spatial) != len(spatial):
        return None
    inner = math.prod(sizes) / max(1, sizes[instruction.kernel_output] * math.prod(w.size for w in instruction.windows))
    outer = math.prod(output) / max(1, math.prod(output[each] for each in spatial))
    places = [image.arrays[0].sizes[each] for each in instruction.input_spatial if each < len(image.arrays[0].sizes)]
    if len(places) != len(spatial):
        return None
    pairs = [
        _pairs(output[each], place, window)
        for each, place, window in zip(spatial, places, instruction.windows, strict=True)
    ]
    return 2.0 * outer * inner * math.prod(pairs) / instruction.batch_groups


def _pairs(output: int, size: int, window: Window) -> int:
    """Along one dimension: how many pairs of an output and a kernel element meet an element of the input."""
    dilated = (size - 1) * window.base_dilation + 1 if size else 0
    if output * window.size > _MOST_PAIRS or not output:
        return output * window.size
    count = 0
    for place in range(window.size):
        offset = place * window.dilation - window.padding_low
        if window.base_dilation == 1:
            first = max(0, math.ceil(-offset / window.stride))
            last = min(output - 1, math.floor((dilated - 1 - offset) / window.stride))
            count += max(0, last - first + 1)
        else:
            at = (step * window.stride + offset for step in range(output))
            count += sum(1 for each in at if 0 <= each < dilated and each % window.base_dilation == 0)
    return count


def _call(instruction: Instruction, computation: Computation) -> float | None:
    """Returns the FLOPs of a product that a library makes: `[b, m, n]` of `[b, m, k]` and `[b, k, n]`, in any order."""
    if not MATMUL_CALL.search(instruction.target):
        forward = CONVOLUTION_CALL.search(instruction.target) and "Forward" in instruction.target
        return _convolution(instruction, computation) if forward else None
    left, right = _operand(instruction, computation, 0), _operand(instruction, computation, 1)
    if left is None or right is None or not (left.arrays and right.arrays and instruction.arrays):
        return None
    result = instruction.arrays[0]
    batch = math.prod(result.sizes[:-2])
    cubed = left.arrays[0].elements * right.arrays[0].elements * result.elements
    return 2.0 * math.sqrt(cubed / batch) if batch else 0.0


def moved(instruction: Instruction, computation: Computation, module: Module) -> float | None:
    """Returns the bytes that one run reads and writes, each array once; None where it runs others.

    Of an array from which only a slice is taken, or in which only a slice is replaced, the slice counts.
    """
    opcode = instruction.opcode
    if opcode in CONTROL:
        return None
    if opcode in FREE:
        return 0.0
    if opcode == "fusion" and instruction.called and (inner := module.computations.get(instruction.called[0])):
        return _fused(instruction, computation, inner)
    return _plain(instruction, computation)


def _plain(instruction: Instruction, computation: Computation) -> float:
    written = sum(each.bytes for each in instruction.arrays)
    if instruction.opcode in ("slice", "dynamic-slice", "gather"):
        return 2 * written
    if instruction.opcode in ("dynamic-update-slice", "scatter"):
        updates = _operand(instruction, computation, 1 if instruction.opcode == "dynamic-update-slice" else 2)
        return 2 * sum(each.bytes for each in updates.arrays) if updates is not None else written
    return written + sum(each.bytes for number in set(instruction.operands) for each in _arrays(computation, number))


def _fused(instruction: Instruction, computation: Computation, inner: Computation) -> float:
    users: dict[int, list[Instruction]] = {}
    for user in inner.instructions.values():
        for number in user.operands:
            users.setdefault(number, []).append(user)
    read = 0.0
    for parameter in inner.instructions.values():
        if parameter.opcode == "parameter" and parameter.parameter < len(instruction.operands):
            whole = sum(array.bytes for array in _arrays(computation, instruction.operands[parameter.parameter]))
            read += min(whole, _taken(parameter, _behind(parameter.number, users, inner), inner, whole))
    root = inner.instructions.get(inner.root)
    written = sum(each.bytes for each in instruction.arrays)
    for _ in range(_MOST_DEEP):
        if root is not None and root.opcode in ("bitcast", "copy", "reshape") and len(root.operands) == 1:
            root = inner.instructions.get(root.operands[0])
    if root is not None and root.opcode == "dynamic-update-slice":
        update = _operand(root, inner, 1)
        written = sum(each.bytes for each in update.arrays) if update is not None else written
    return read + written


def _behind(number: int, users: dict[int, list[Instruction]], inner: Computation) -> list[tuple[int, Instruction]]:
    """Returns the readers of a parameter, by way of bitcasts too, each with the number under which it reads."""
    found, left, seen = [], [number], {number}
    while left:
        at = left.pop()
        for user in users.get(at, ()):
            if user.opcode == "bitcast":
                if user.number not in seen:
                    seen.add(user.number)
                    left.append(user.number)
            else:
                found.append((at, user))
    return found


def _taken(parameter: Instruction, readers: list[tuple[int, Instruction]], inner: Computation, whole: float) -> float:
    """Returns the bytes of a parameter that a fusion reads."""
    taken = 0.0
    for number, each in readers:
        if each.opcode in ("slice", "dynamic-slice", "gather") and each.operands and each.operands[0] == number:
            taken += sum(array.bytes for array in each.arrays)
        elif each.opcode == "dynamic-update-slice" and each.operands and each.operands[0] == number:
            continue  # replaced in place
        else:
            return whole
    return taken


def _operand(instruction: Instruction, computation: Computation, place: int) -> Instruction | None:
    if place >= len(instruction.operands):
        return None
    return computation.instructions.get(instruction.operands[place])


def _arrays(computation: Computation, number: int) -> tuple[Array, ...]:
    found = computation.instructions.get(number)
    return found.arrays if found is not None else ()


def _elements(arrays: Iterable[Array]) -> int:
    return sum(each.elements for each in arrays)
