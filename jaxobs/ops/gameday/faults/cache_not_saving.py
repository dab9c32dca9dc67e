"""A persistent cache that never hits. `/sys/kernel` is a directory in which nobody can make a file."""

from __future__ import annotations

from jaxobs.ops.gameday.fault_types import Fault

FAULT = Fault(
    title="The persistent cache's directory cannot be written, so nothing is stored, and nothing ever hits.",
    causes=("cache_unusable",),
    alert="JaxPersistentCacheNotSaving",
    lead=2,
    undo="Set `jax_compilation_cache_dir` to a directory that the job can write; `jaxobs cache verify DIR` checks it.",
    settings={
        "JAX_ENABLE_COMPILATION_CACHE": "true",
        "JAX_COMPILATION_CACHE_DIR": "/sys/kernel",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    },
)
