"""The persistent compilation cache cannot be used."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import SLOW, Alert, Event, Knowledge, Line, Metric

KNOWN = Knowledge(
    title="The persistent cache cannot be read or written",
    impact=SLOW,
    signs=(
        Line(
            "Error (?:reading|writing) persistent compilation cache entry.{0,200}(?:FileExists|"
            r"Permission|Forbidden|Access ?[Dd]enied|Read-only|filelock|NotADirectory|\[Errno|Timeout|"
            "OSError|Please install|UNIMPLEMENTED)",
            passes=False,
        ),
        Line(
            "unable to generate cache key, skipping the cache|"
            r"Please install the `[\w\[\]]+` package to (?:set `jax_compilation_cache|specify a cache)",
            passes=False,
        ),
        Line(r"\b[A-Z]+_?[A-Z]+: \S*/xla_gpu_(?:per_fusion_autotune_cache_dir|kernel_cache_file)\b\S*; ", passes=False),
        Line("Failed to deserialize executable: UNIMPLEMENTED", unless="RuntimeError", passes=False),
        Event("unsaved:disabled", about="could not be opened"),
        Event(
            "unsaved:error",
            about=r"could not be written|of its entry were written|exceeds jax_compilation_cache_max_size|"
            r"entry is there but could not be used: (?:\w*OS|\w*IO|Permission|\w+Found)Error",
        ),
        Metric("jax_persistent_cache_unsaved_total", labels=(("reason", "error"),), weak=True),
        Alert("JaxPersistentCacheNotSaving"),
    ),
    follows=("cache_corrupt", "disk_full", "storage_denied", "storage_unavailable"),
    needs=("log", "event-log", "metrics-file", "target", "prometheus"),
    collect=(
        "JAX's warnings about the cache in the log, or the event log of the process: damaged entries count as programs "
        "that could not be saved, too."
    ),
    fix=(
        "Fix the directory that the text names: a path that is a file, rights, a full disk, the "
        "`filelock` package where jax_compilation_cache_max_size is set. Check with `jaxobs "
        "cache verify DIR`."
    ),
    runbook="JaxPersistentCacheNotSaving",
)
