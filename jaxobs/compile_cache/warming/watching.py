"""Watches the persistent cache for each compile, whether or not jaxobs is installed in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable

from jaxobs.base.config import Settings
from jaxobs.facts.compilations import Compilation
from jaxobs.facts.events import Event
from jaxobs.session import lifecycle
from jaxobs.sources.compilations import Compilations
from jaxobs.state.store import Store


class Watch:
    """The source of compilations with a store of its own, while it is entered."""

    def __init__(self) -> None:
        self._thread = threading.local()
        store = Store(Settings())
        store.subscribe(self._on_event)
        self._source = Compilations(store)

    def __enter__(self) -> Watch:
        self._source.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._source.stop()

    def _on_event(self, event: Event) -> None:
        if isinstance(event, Compilation):
            self._thread.latest = event

    def hand_over(self, since: float) -> list[Callable[[], None]]:
        """To be called on the thread that compiles what this one has lowered since then."""
        return [self._source.hand_over(since), *lifecycle.hand_over(since)]

    def forget(self) -> None:
        """Before a compile of this thread."""
        self._thread.latest = None

    def seen(self) -> Compilation | None:
        """The latest compilation of this thread; None where it was in the memory of the process already."""
        latest: Compilation | None = self._thread.latest
        return latest
