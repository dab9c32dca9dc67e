"""JAX's events: their names, and the lists of their listeners, called synchronously on the thread that compiles.

`jax._src.monitoring` keeps the lists.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass

from jaxobs.base.files import absolute

PHASE_OF_EVENT = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}

CACHE_REQUEST = "/jax/compilation_cache/compile_requests_use_cache"

CACHE_HIT = "/jax/compilation_cache/cache_hits"

CACHE_WRITE = "/jax/compilation_cache/cache_misses"  # despite its name: counted when an entry is about to be written

CACHE_LOAD_SECONDS = "/jax/compilation_cache/cache_retrieval_time_sec"

CACHE_SAVED_SECONDS = "/jax/compilation_cache/compile_time_saved_sec"


@dataclass(frozen=True, slots=True)
class Listeners:
    """Our callbacks. `started` is called when a phase begins (JAX 0.6.1 and later), `ended` when it ends."""

    event: Callable[..., None]
    ended: Callable[..., None]
    started: Callable[..., None] | None = None

    def pairs(self) -> list[tuple[str, Callable[..., None]]]:
        found = [("_event_listeners", self.event), ("_event_duration_secs_listeners", self.ended)]
        return found if self.started is None else [*found, ("_scalar_listeners", self.started)]


def register(listeners: Listeners) -> int:
    """Adds those of our callbacks that JAX does not have; returns how many it lacked."""
    from jax._src import monitoring

    added = 0
    for name, callback in listeners.pairs():
        present = getattr(monitoring, name, None)
        if present is not None and callback not in present:
            present.append(callback)
            added += 1
    return added


def unregister(listeners: Listeners) -> None:
    """Removes our callbacks and nobody else's; those that somebody removed already are not an error."""
    from jax._src import monitoring

    for name, callback in listeners.pairs():
        present = getattr(monitoring, name, None)
        if present is not None and callback in present:
            present.remove(callback)


def other_copies(listeners: Listeners) -> list[str]:
    """Files of other copies of jaxobs whose listeners JAX calls in this process."""
    from jax._src import monitoring

    ours = {callback for _, callback in listeners.pairs()}
    here = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
    found = set()
    for name, _ in listeners.pairs():
        for callback in getattr(monitoring, name, None) or []:
            code = getattr(callback, "__code__", None) or getattr(getattr(callback, "__func__", None), "__code__", None)
            if callback in ours or getattr(callback, "__module__", "").split(".")[0] != "jaxobs" or not code:
                continue
            if not absolute(code.co_filename).startswith(here):
                found.add(code.co_filename)
    return sorted(found)
