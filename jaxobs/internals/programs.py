"""Lowered programs: one short hash for each, the same wherever the program is."""

from __future__ import annotations

import hashlib
import io
from typing import Any


def fingerprint(module: Any) -> str | None:
    """Short hash of a lowered program without its source locations: equal wherever the program is."""
    if module is None:
        return None
    try:
        program = _without_locations(module)
    except (ImportError, AttributeError, ValueError):  # slower by far, but the same everywhere too
        program = module.operation.get_asm(enable_debug_info=False).encode()
    return hashlib.sha256(program).hexdigest()[:12]


def _without_locations(module: Any) -> bytes:
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
            program = _bytecode(copy)
    return program


def _bytecode(operation: Any) -> bytes:
    output = io.BytesIO()
    operation.write_bytecode(output)
    return output.getvalue()


_POINTERS = b"CustomSPMDPartitioning"


def _remove_pointers(operation: Any) -> None:
    """Removes what differs from process to process: a custom partitioning is called by its address."""
    from jax._src.lib.mlir import ir

    def remove(each: Any) -> Any:
        if "call_target_name" in each.attributes and each.attributes["call_target_name"].value.encode() == _POINTERS:
            each.attributes["backend_config"] = ir.StringAttr.get("")
        return ir.WalkResult.ADVANCE

    operation.walk(remove)
