"""Capabilities of this JAX: looked at once, by name; no version is asked."""

import sys
from typing import Any

from jaxobs.base.guard import guarded
from jaxobs.internals.cache_keys import can_tell
from jaxobs.internals.distributed import can_talk
from jaxobs.internals.fastpath import sees_falls
from jaxobs.internals.post_hook import can_hook
from jaxobs.internals.tracing import trace_state
from jaxobs.internals.transfers import sees_transfers

_NAMES = (
    "listeners", "phase_starts", "miss_frame", "trace_state", "fastpath", "backends", "persistent_cache",
    "cache_keys", "other_processes", "call_hook", "transfers_to_host", "transfers_to_device",
)  # fmt: skip


def probe() -> dict[str, bool]:
    """Returns the capabilities of this JAX. Needs JAX to be imported; initializes nothing, compiles nothing."""
    found = dict.fromkeys(_NAMES, False)
    with guarded("probe"):
        from jax._src import monitoring

        found["listeners"] = isinstance(getattr(monitoring, "_event_duration_secs_listeners", None), list)
        found["phase_starts"] = found["listeners"] and _names_in(
            "jax._src.dispatch", "LogElapsedTimeContextManager.__enter__", "record_scalar"
        )
    with guarded("probe"):
        found["miss_frame"] = _has_miss_frame()
    with guarded("probe"):
        found["trace_state"] = trace_state().eval_trace is not None
    with guarded("probe"):
        found["fastpath"] = sees_falls()
    with guarded("probe"):
        import jax._src.xla_bridge as bridge

        found["backends"] = hasattr(bridge, "_backends") and hasattr(bridge, "backends_are_initialized")
    with guarded("probe"):
        import jax._src.compilation_cache as cache

        found["persistent_cache"] = hasattr(cache, "_cache")
    with guarded("probe"):
        found["cache_keys"] = can_tell()
    with guarded("probe"):
        found["other_processes"] = can_talk()
    with guarded("probe"):
        found["call_hook"] = can_hook()
    with guarded("probe"):
        found["transfers_to_host"], found["transfers_to_device"] = sees_transfers()
    return found


def _names_in(module: str, qualname: str, name: str) -> bool:
    owner: Any = sys.modules.get(module)
    for part in qualname.split("."):
        owner = getattr(owner, part, None)
    code = getattr(owner, "__code__", None)
    return code is not None and name in code.co_names


def _has_miss_frame() -> bool:
    """Returns whether `jax._src.pjit` still defines a `cache_miss` with the variables that we read."""
    import jax._src.pjit as pjit

    for value in vars(pjit).values():
        code = getattr(value, "__code__", None)
        for constant in getattr(code, "co_consts", ()):
            if getattr(constant, "co_name", None) == "cache_miss":
                return {"args", "kwargs"} <= set(constant.co_varnames) and {"fun", "jit_info"} <= set(
                    constant.co_freevars
                )
    return False
