"""Backends, devices and the place in the job, asked without waking anything."""

import contextlib
import itertools
import sys
from typing import Any

UNTOLD = (AttributeError, NotImplementedError, RuntimeError)
"""Errors of a backend that cannot tell: jaxlib lacks the method, or answers UNIMPLEMENTED (a RuntimeError)."""

_STATISTICS = {
    "in_use_bytes": "bytes_in_use",
    "peak_bytes": "peak_bytes_in_use",
    "limit_bytes": "bytes_limit",
    "reserved_bytes": "bytes_reserved",
    "largest_free_block_bytes": "largest_free_block_bytes",
}

_complete = 0
"""Which of JAX's dictionaries of backends was seen complete, by its id; 0 for none."""


def backends_awake() -> bool:
    """Returns whether the program has initialized JAX's backends, all of them; asking never does, and never waits."""
    global _complete
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is None:
        return False
    # `backends_are_initialized` waits for a lock that is held for as long as an initialization takes: minutes, where
    # other hosts are waited for. A scrape, and whoever records meanwhile, must not wait with it.
    backends = getattr(bridge, "_backends", None)
    if backends is not None:
        if not backends:
            _complete = 0
        elif _complete != id(backends):
            # The CPU is there first, long before an accelerator that is still on its way.
            filling = getattr(getattr(bridge, "_backend_lock", None), "locked", bool)()
            _complete = 0 if filling else id(backends)
        return _complete != 0
    awake = getattr(bridge, "backends_are_initialized", None)
    return awake is not None and bool(awake())


def clients() -> list[Any]:
    """The backends that are initialized; none is woken."""
    if not backends_awake():
        return []
    bridge = sys.modules["jax._src.xla_bridge"]
    backends = getattr(bridge, "_backends", None)
    if backends is None:
        import jax

        return [jax.local_devices()[0].client]
    return list(dict.fromkeys(list(backends.values())))


def default_platform() -> str | None:
    """JAX's default backend, once the program has woken it."""
    if not backends_awake():
        return None
    client = getattr(sys.modules["jax._src.xla_bridge"], "_default_backend", None)
    return getattr(client, "platform", None)


def process_index_and_count() -> tuple[int, int]:
    """Place of this process in its job; (0, 1) until the program has said otherwise."""
    distributed = sys.modules.get("jax._src.distributed")
    state = getattr(distributed, "global_state", None)
    index = getattr(state, "process_id", 0) or 0
    count = getattr(state, "num_processes", 1) or 1
    if count == 1:
        for client in clients():
            count = max(count, client.process_index() + 1, *(d.process_index + 1 for d in client.devices()))
            index = max(index, client.process_index())
    return index, count


def computing(most: int | None = None) -> bool | None:
    """Returns whether a device still computes one of its newest arrays, without waiting; None if unknown.

    Args:
      most: how many arrays are asked; by default all.
    """
    awake = clients()
    for client in awake:
        for array in itertools.islice(client.live_arrays(), most):
            with contextlib.suppress(RuntimeError):  # deleted meanwhile
                if not array.is_deleted() and not array.is_ready():
                    return True
    return False if awake else None


def device_name(device: Any) -> str:
    """`platform:id`: an id alone comes again as soon as a process has two backends."""
    return f"{device.platform}:{device.id}"


def allocator(device: Any) -> dict[str, Any]:
    """Returns a device's allocator figures in bytes; raises `RuntimeError` or another of `UNTOLD`."""
    statistics = device.memory_stats() or {}
    return {ours: int(statistics[theirs]) for ours, theirs in _STATISTICS.items() if statistics.get(theirs) is not None}
