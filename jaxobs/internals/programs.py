"""Lowered programs: one short hash for each, the same wherever the program is."""

from __future__ import annotations

import hashlib
import io
from typing import Any

from jaxobs.internals.executables import devices


def fingerprint(module: Any) -> str | None:
    """Short hash of a lowered program without its source locations: equal wherever the program is."""
    return fingerprint_and_whether_in_key(module)[0]


def fingerprint_and_whether_in_key(module: Any) -> tuple[str | None, bool]:
    """The fingerprint, and whether the keys of JAX's persistent cache are made of the very same bytes."""
    if module is None:
        return None, False
    try:
        program, in_key = _without_locations(module)
    except (ImportError, AttributeError, ValueError):  # slower by far, but the same everywhere too
        program, in_key = module.operation.get_asm(enable_debug_info=False).encode(), False
    return hashlib.sha256(program).hexdigest()[:12], in_key


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
