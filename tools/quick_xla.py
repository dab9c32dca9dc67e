"""Flags of XLA for programs that are only there to be seen compiling: half the time, for code that may be slow."""

from __future__ import annotations

import importlib.metadata

_LOOP_FUSIONS_AS_BEFORE = (0, 11)
"""The release of jaxlib that no longer knows the flag, and ends the process at one that it does not know."""


def quick(*flags: str, jaxlib: str | None = None) -> str:
    """Returns the flags and those that make compiling quick, for `XLA_FLAGS`.

    Args:
      jaxlib: the release that gets them; by default, that of this interpreter.
    """
    # In one piece: each of the 32 pieces into which XLA would cut a program costs LLVM as much again.
    chosen = [*flags, "--xla_backend_optimization_level=0", "--xla_cpu_parallel_codegen_split_count=1"]
    version = tuple(int(part) for part in (jaxlib or importlib.metadata.version("jaxlib")).split(".")[:2])
    if version < _LOOP_FUSIONS_AS_BEFORE:
        chosen.append("--xla_cpu_use_fusion_emitters=false")
    return " ".join(chosen)
