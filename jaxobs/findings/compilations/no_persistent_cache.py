"""`no_persistent_cache`: each start recompiles everything."""

from collections.abc import Iterator

from jaxobs.findings import all_kinds
from jaxobs.findings.cases import Case, Scene
from jaxobs.findings.compilations.support.case import duration

NAME = "no_persistent_cache"
NEEDS = Scene

LEAST_SECONDS = 60.0
"""Below, few would bother to keep a directory for it."""

ADVICE = (
    "Set JAX_COMPILATION_CACHE_DIR to a directory that outlives the process: the next start loads what has compiled."
)
ADVICE_TORCH_XLA = (
    "Call `torch_xla.runtime.initialize_cache(DIRECTORY)` before the first graph, with a directory that outlives the "
    "process: on TPUs the next start loads what has compiled."
)


def find(scene: Scene) -> Iterator[Case]:
    """Yields at most one case."""
    cache, by_function = scene.snapshot.cache, _compile_seconds(scene)
    seconds = sum(by_function.values())
    if cache.enabled or cache.entries is not None or seconds < LEAST_SECONDS:
        return
    lazy = "torch_xla" in scene.snapshot.process.versions
    longest = max(by_function, key=lambda function: by_function[function])
    yield Case(
        severity="info",
        summary=(
            f"{'torch_xla' if lazy else 'JAX'}'s persistent cache is off: the next start will compile for "
            f"{duration(seconds)} again, {duration(by_function[longest])} of it for `{longest}`."
        ),
        advice=ADVICE_TORCH_XLA if lazy else ADVICE,
        seconds=seconds,
        data={"function": longest},
    )


def _compile_seconds(scene: Scene) -> dict[str, float]:
    avoided = {kind.NAME for kind in all_kinds.watching()}
    told = {each.function for each in scene.snapshot.findings if each.ended is None and each.finding in avoided}
    told |= {event.function for event in scene.compilations if event.is_avoidable}
    return {name: seconds for name, seconds in scene.compile_seconds.items() if name not in told}
