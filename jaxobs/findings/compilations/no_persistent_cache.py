"""`no_persistent_cache`: each start recompiles everything."""

from __future__ import annotations

from collections.abc import Iterator

from jaxobs.findings.cases import Case
from jaxobs.findings.compilations.support.case import duration
from jaxobs.findings.scene import Scene

NAME = "no_persistent_cache"
NEEDS = Scene
ABOUT = "Each start compiles for a long time, and nothing is kept for the next one."

LEAST_SECONDS = 60.0
"""Below, few would bother to keep a directory for it."""

TOLD_WHEN = f"the compiler took {LEAST_SECONDS:g} s, and JAX's persistent cache is off"


def find(scene: Scene) -> Iterator[Case]:
    """Yields at most one case."""
    seconds = sum(scene.compile_seconds.values())
    if scene.snapshot.cache.enabled or scene.snapshot.cache.entries is not None or seconds < LEAST_SECONDS:
        return
    longest = max(scene.compile_seconds, key=lambda function: scene.compile_seconds[function])
    yield Case(
        severity="info",
        summary=(
            f"JAX's persistent cache is off: the next start will compile for {duration(seconds)} again, "
            f"{duration(scene.compile_seconds[longest])} of it for `{longest}`."
        ),
        advice="Set JAX_COMPILATION_CACHE_DIR to a directory that outlives the process.",
        seconds=seconds,
        data={"function": longest},
    )
