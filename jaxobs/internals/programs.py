"""Lowered programs: one short hash for each, the same wherever the program is, its results and its size."""

from __future__ import annotations

import hashlib
import io
import itertools
from collections.abc import Iterator
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
        if "sym_name" in function.attributes and function.attributes["sym_name"].value == MAIN:
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
MAIN = "main"
"""Name of the function with which a program begins."""
