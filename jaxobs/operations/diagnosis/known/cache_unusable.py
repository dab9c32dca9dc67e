"""The persistent compilation cache cannot be used."""

from __future__ import annotations

from jaxobs.operations.diagnosis.knowledge import SLOW, Knowledge, Line, Metric

KNOWN = Knowledge(
    title="The persistent cache cannot be read or written",
    impact=SLOW,
    signs=(
        Line(
            "Error (?:reading|writing) persistent compilation cache entry.{0,200}(?:FileExists|"
            r"Permission|Forbidden|Access ?[Dd]enied|Read-only|filelock|NotADirectory|\[Errno|Timeout|"
            "OSError)",
            passes=False,
        ),
        Metric("jax_persistent_cache_unsaved_total", labels=(("reason", "error"),)),
    ),
    follows=("disk_full", "storage_denied", "storage_unavailable"),
    needs=("log", "metrics-file", "target", "prometheus"),
    fix=(
        "Fix the directory that the text names: a path that is a file, rights, a full disk, the "
        "`filelock` package where jax_compilation_cache_max_size is set. Check with `jaxobs "
        "cache verify DIR`."
    ),
    runbook="JaxPersistentCacheNotSaving",
)
