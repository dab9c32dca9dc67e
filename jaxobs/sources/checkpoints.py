"""Checkpoints by Orbax's own events, and waits without any: what blocked the program, and when a save was complete."""

import time
from collections import Counter
from typing import Any

from jaxobs import internals
from jaxobs.base.guard import guard
from jaxobs.internals import Listeners, checkpoint_waits, orbax_events
from jaxobs.sources.support.source import Source
from jaxobs.state import checkpoints
from jaxobs.state.checkpoints import Checkpoints
from jaxobs.state.store import Store
from jaxobs.state.wall import Scope, Wall

LEAST_WAIT = 0.001
"""Seconds from which on a wait is one: every save asks for the one before it."""


class CheckpointEvents(Source):
    """The source: listeners in, seconds by operation and the state of the latest checkpoint out."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._tells_complete = False
        """True if this Orbax, on this process, says when a save is complete."""
        self._counted: Counter[str] = Counter()
        """Operations so far: one within another, or one that Orbax reports as well, counts once."""
        self._failed = 0
        """Operations that raised so far: an exception that passes through two of them counts once."""
        self.listeners = Listeners(self._on_event, self._on_ended, self._on_scalar)

    def start(self) -> None:
        """Begins to listen. Idempotent."""
        internals.register(self.listeners)
        checkpoint_waits.watch(self._wait_began, self._wait_ended)

    def stop(self) -> None:
        """Stops listening."""
        internals.unregister(self.listeners)
        checkpoint_waits.unwatch()

    def sample(self) -> None:
        """Puts our listeners back if somebody removed them."""
        internals.register(self.listeners)

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
            self._counted[operation] += 1
            self._told().observe(operation, duration)
        if event == orbax_events.LETS_CALLER_GO:
            self._told().only_latest()
        elif event == orbax_events.SAVE_THREAD_ENDS and not self._tells_complete:
            self._told().end()

    @guard("checkpoints.scalar")
    def _on_scalar(self, event: str, value: float, **kwargs: Any) -> None:
        if operation := orbax_events.SIZES.get(event):
            self._store.part(Checkpoints).sized(operation, round(value * 2**30))

    def _wait_began(self, operation: str) -> tuple[Scope | None, float, int, int]:
        scope = self._store.part(Wall).enter("checkpoint")
        if scope is not None:
            scope.held = True
        return scope, time.perf_counter(), self._counted[operation], self._failed

    def _wait_ended(
        self, operation: str, wait: tuple[Scope | None, float, int, int] | None, error: BaseException | None
    ) -> None:
        scope, began, counted, failed = (None, 0.0, 0, 0) if wait is None else wait
        if scope is None:
            return  # on a thread that holds nobody up; whoever waits for the thread gets its exception
        scope.wall.leave(scope)
        seconds = time.perf_counter() - began
        if isinstance(error, Exception) and self._failed == failed:
            self._failed += 1
            self._told().failed("save_async" if operation == "wait" else operation)
        if self._counted[operation] == counted and (operation != "wait" or seconds >= LEAST_WAIT):
            self._counted[operation] += 1
            self._told().observe(operation, seconds)

    def _told(self) -> Checkpoints:
        found = self._store.part(Checkpoints)
        found.told += 1
        return found


source = CheckpointEvents
