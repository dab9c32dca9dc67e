"""Compiled programs: the memory and the operations that the compiler says they take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SECTIONS = {
    "argument": "argument_size_in_bytes",
    "output": "output_size_in_bytes",
    "temp": "temp_size_in_bytes",
    "alias": "alias_size_in_bytes",
    "code": "generated_code_size_in_bytes",
}


def memory(executable: Any) -> dict[str, int]:
    """Bytes on one device by section; empty where the backend does not tell."""
    try:
        stats = executable.get_compiled_memory_stats()
    except (AttributeError, NotImplementedError, RuntimeError):  # JaxRuntimeError: UNIMPLEMENTED
        return {}
    found = {section: getattr(stats, name, None) for section, name in _SECTIONS.items()}
    return {section: int(size) for section, size in found.items() if size is not None}


def flops(executable: Any) -> float | None:
    """Floating-point operations of one execution; None where the backend does not tell."""
    try:
        costs = executable.cost_analysis()
    except (AttributeError, NotImplementedError, RuntimeError):
        return None
    first = costs if isinstance(costs, Mapping) else (costs or [{}])[0]
    found = first.get("flops")
    return None if found is None or found < 0 else float(found)
