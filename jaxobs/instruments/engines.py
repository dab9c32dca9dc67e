"""`engine`: what an inference engine, a loop that computes many requests in one batch, reports of itself."""

import math
from typing import Any

from jaxobs.base import config
from jaxobs.base.guard import guarded
from jaxobs.instruments.requests import request
from jaxobs.state import store
from jaxobs.state.routes import Routes, open_request

_off = config.disabled()
_serving = request("")
_serving._parent = None
"""Current in the contexts that engines run in, and never open: what is called there serves, and is not a step."""
_MOST_REQUESTS = 1 << 40


def engine(
    name: str = "engine", *, running: int | None = None, waiting: int | None = None, kv_cache: float | None = None
) -> None:
    """Reports the state of an inference engine; call it in the engine's loop, and when it goes idle.

        jaxobs.engine(running=len(batch), waiting=queue.qsize(), kv_cache=blocks_used / blocks)

    What is left out stays as it was reported last. From then on, what this thread calls is not taken for steps of a
    loop; a program that trains on the same thread declares its steps by `jaxobs.step`.

    Args:
      name: of the engine, where there are several in this process; at most 8.
      running: requests in its batch.
      waiting: requests that wait for a place in it.
      kv_cache: share of its key-value cache that is in use, from 0 to 1.
    """
    if _off:
        return
    with guarded("engine"):
        known = store.current()
        if open_request.get() is None:
            open_request.set(_serving)
        given = (running, waiting, kv_cache)
        found = (_number(running), _number(waiting), _share(kv_cache))
        if any(valid is None and told is not None for valid, told in zip(found, given, strict=True)):
            known.note(
                f"`jaxobs.engine` has running={running!r:.40}, waiting={waiting!r:.40}, kv_cache={kv_cache!r:.40}: "
                "valid are whole numbers, and a share of the cache from 0 to 1."
            )
        if not known.part(Routes).engines.report(str(name), *found):
            known.drop("engines")


def _number(value: Any) -> int | None:
    try:
        number = int(value)
        return number if number == value and 0 <= number <= _MOST_REQUESTS else None
    except Exception:  # None, or whatever the program's own type raises
        return None


def _share(value: Any) -> float | None:
    try:
        number = float(value)
        return number if math.isfinite(number) and 0 <= number <= 1 else None
    except Exception:
        return None
