"""Programs that were in the cache are compiled again."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import SLOW, Alert, Event, Knowledge

KNOWN = Knowledge(
    title="The persistent cache misses programs that an earlier run had compiled",
    impact=SLOW,
    signs=(
        Event("finding:cache_missed_again"),
        Alert("JaxPersistentCacheLostAfterRestart", weak=False),
        Alert("JaxPersistentCacheIneffective"),
    ),
    follows=("cache_corrupt", "cache_unusable", "cache_other_cpu", "version_skew"),
    needs=("event-log", "target", "prometheus"),
    fix=(
        "See which part of the key differs (`jaxobs explain`): versions, XLA_FLAGS, devices, or "
        "the program itself; pin what changed by mistake, and keep the directory over restarts."
    ),
    runbook="JaxPersistentCacheLostAfterRestart",
)
