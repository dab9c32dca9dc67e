"""What inference engines report of themselves: the latest of each."""

from __future__ import annotations

import threading

from jaxobs.facts.requests import EngineState
from jaxobs.state.call_stats import label

MOST_ENGINES = 8


class Engines:
    """The engines of this process, by name."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._engines: dict[str, EngineState] = {}

    def report(self, name: str, running: int | None, waiting: int | None, kv_cache: float | None) -> bool:
        """Takes what is not None; False where there are too many engines for another."""
        name = label(name)
        with self._lock:
            known = self._engines.get(name)
            if known is None:
                if len(self._engines) >= MOST_ENGINES:
                    return False
                known = EngineState(engine=name)
            self._engines[name] = EngineState(
                engine=name,
                running=known.running if running is None else running,
                waiting=known.waiting if waiting is None else waiting,
                kv_cache_ratio=known.kv_cache_ratio if kv_cache is None else kv_cache,
            )
        return True

    def frozen(self) -> tuple[EngineState, ...]:
        """In the order in which they first reported."""
        with self._lock:
            return tuple(self._engines.values())
