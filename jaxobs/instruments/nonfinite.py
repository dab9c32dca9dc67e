"""`watch`: looks whether values turn NaN or infinite, without waiting for them.

The call keeps a reference. A thread, which lives as long as values come, asks 2 to 20 times a second what has arrived.
"""

import atexit
import sys
import time
from collections.abc import Sequence
from typing import Any, Never

from jaxobs.base import config, threads
from jaxobs.base.guard import guard, guarded
from jaxobs.internals.source_files import user_line
from jaxobs.state import store
from jaxobs.state.call_stats import label
from jaxobs.state.store import Store
from jaxobs.state.wall import Wall
from jaxobs.state.watched import MOST_PENDING, Watched

_LOOK_SECONDS, _MOST_LOOK_SECONDS = 0.05, 0.5
"""Least and most seconds between two looks."""
_BUDGET = 0.001
"""Share of a core that the looks may take, unless values come so fast that they would be missed."""
_REST_SECONDS = 2.0
"""How long the thread waits for more before it ends."""


def watch(*unnamed: Never, **values: Any) -> None:
    """Looks, without synchronizing, whether these arrays or numbers turn NaN or infinite.

        state, loss = train_step(state, batch)
        jaxobs.watch(loss=loss)

    Reported once for each name as an event `nonfinite`, with the first step, until the value is finite again. Call it
    on what a jitted function returns, not inside of it.

    Args:
      **values: by name: arrays, numbers, or pytrees of them. Arrays of more than 1 MiB are not looked at, which is
        counted (`skipped` in the snapshot): watch a norm of theirs.

    Raises:
      TypeError: a value is given without a name.
    """
    if unnamed:
        raise TypeError(_how_to_call(unnamed))
    if _disabled:
        return
    try:
        known = store.current()
        watched, steps = known.part(Watched), known.part(Wall).steps or None
        for name, value in values.items():
            row = watched.row(name)
            if row is None:
                row = watched.add(label(name), user_line(sys._getframe(1)))
            watched.take(row, value, steps)
        if not watched.running and watched.pending and watched.begin():
            _start(known, watched)
    except Exception as error:
        with guarded("watch"):
            raise error


_disabled = config.disabled()


def _how_to_call(unnamed: Sequence[object]) -> str:
    """With the name that was meant where one was given as text, as in `watch(loss, "loss")`."""
    name = next((each for each in unnamed if isinstance(each, str) and each.isidentifier()), "loss")
    return f"`jaxobs.watch` takes each value by its name. Call it as: jaxobs.watch({name}={name})"


def _start(known: Store, watched: Watched) -> None:
    global _thread
    if _thread is None:
        atexit.register(_exit)  # runs before JAX's own, which was registered before
    _thread = threads.Thread(target=_look, args=(known, watched), name="jaxobs-watch")
    _thread.start()


_thread: threads.Thread | None = None
_exiting = threads.Lock()
_exiting.acquire()
"""Held until the interpreter exits."""


@guard("watch.exit")
def _exit() -> None:
    """At the interpreter's exit: no more looks, for JAX forgets its backends next."""
    _exiting.release()
    if _thread is not None:
        threads.join(_thread)


@guard("watch.thread")
def _look(known: Store, watched: Watched) -> None:
    idle, used, pause = 0.0, 0.0, _LOOK_SECONDS
    while not _exiting.acquire(timeout=pause):
        pending = watched.pending
        idle = 0.0 if pending else idle + pause
        look(known, watched)
        if idle >= _REST_SECONDS and watched.rest():
            return
        before, used = used, time.thread_time()
        most = _LOOK_SECONDS if pending > MOST_PENDING // 4 else _MOST_LOOK_SECONDS
        pause = max(_LOOK_SECONDS, min((used - before) / _BUDGET, most))
    _exiting.release()


def look(known: Store, watched: Watched) -> None:
    """Asks the values that have arrived, and records what turned non-finite."""
    with guarded("watch.look"):
        for event in watched.look():
            known.record(event)
