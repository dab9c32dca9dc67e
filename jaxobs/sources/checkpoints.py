"""Checkpoints by Orbax's own events: what held the program up, and when a save was complete."""

from __future__ import annotations

from typing import Any

from jaxobs import checkpoints, internals
from jaxobs.checkpoints import Checkpoints
from jaxobs.guard import guard
from jaxobs.internals import Listeners, orbax_events
from jaxobs.store import Store
from jaxobs.wall import Wall


class CheckpointEvents:
    """The source: listeners in, seconds by operation and the state of the latest checkpoint out."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tells_complete = False
        """Whether this Orbax, on this process, says when a save is complete."""
        self.listeners = Listeners(self._on_event, self._on_ended)

    def start(self) -> None:
        """Begins to listen. Idempotent."""
        internals.register(self.listeners)

    def stop(self) -> None:
        """Stops listening."""
        internals.unregister(self.listeners)

    def sample(self) -> None:
        """Puts our listeners back if somebody removed them."""
        internals.register(self.listeners)

    def after_fork(self) -> None:
        """Nothing to forget."""

    @guard("checkpoints.event")
    def _on_event(self, event: str, **kwargs: Any) -> None:
        if event in orbax_events.SAVE_BEGINS:
            found = self._told()
            found.begin(checkpoints.mark(self._store.part(Wall)))
        elif event == orbax_events.SAVE_COMPLETE:
            self._tells_complete = True
            self._told().end()

    @guard("checkpoints.ended")
    def _on_ended(self, event: str, duration: float, **kwargs: Any) -> None:
        if event in orbax_events.BLOCKING:
            self._store.part(Wall).move("checkpoint", duration)
        operation = orbax_events.OPERATIONS.get(event)
        if operation is not None:
            self._told().observe(operation, duration)
        if event == orbax_events.LETS_CALLER_GO:
            self._told().only_latest()
        elif event == orbax_events.SAVE_THREAD_ENDS and not self._tells_complete:
            self._told().end()

    def _told(self) -> Checkpoints:
        found = self._store.part(Checkpoints)
        found.told += 1
        return found


def source(store: Store) -> CheckpointEvents:
    """What the folder's discovery asks every source for."""
    return CheckpointEvents(store)
