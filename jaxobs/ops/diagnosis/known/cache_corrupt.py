"""Entries of the persistent compilation cache are damaged."""

from __future__ import annotations

from jaxobs.ops.diagnosis.knowledge import SLOW, Event, Knowledge, Line

KNOWN = Knowledge(
    title="Entries of the persistent cache are damaged, and are never repaired",
    impact=SLOW,
    signs=(
        Line(
            "Error reading persistent compilation cache entry.{0,200}(?:[Dd]ecompress|truncated|"
            "incomplete|zstd|ZstdError|zlib|corrupt|CRC|[Dd]eserializ|unpickl|Invalid|[Ff]ailed to parse|[Pp]arse|"
            "RET_CHECK|is not unique|DATA_LOSS)",
            passes=False,
        ),
        Line("Persistent compilation cache inconsistency", passes=False),
        Event(
            "unsaved:error", about=r"entry is there but could not be used(?!: (?:\w*OS|\w*IO|Permission|\w+Found)Error)"
        ),
    ),
    needs=("log", "event-log", "target"),
    fix=(
        "Find and remove the damaged entries: `jaxobs cache verify DIR`. They come from writers "
        "that were killed, or from a full disk."
    ),
    runbook="JaxPersistentCacheIneffective",
)
