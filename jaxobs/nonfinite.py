"""`watch`: looks whether values turn NaN or infinite, without waiting for them.

The call keeps a reference. A thread, which lives as long as values come, asks twenty times a second what has arrived.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
from types import FrameType
from typing import Any

from jaxobs import config, store, threads
from jaxobs.call_stats import label
from jaxobs.guard import guard, guarded
from jaxobs.internals.source_files import is_jax, is_plumbing
from jaxobs.store import Store
from jaxobs.wall import Wall
from jaxobs.watched import Watched

_LOOK_SECONDS = 0.05
_REST_SECONDS = 2.0
"""How long the thread waits for more before it ends."""


def watch(**values: Any) -> None:
    """Looks, without synchronising, whether these arrays or numbers turn NaN or infinite.

        state, loss = train_step(state, batch)
        jaxobs.watch(loss=loss)

    Told once for each name as an event `nonfinite`, with the first step, until the value has been finite again. Call it
    on what a jitted function returns, not inside of it.

    Args:
      **values: by name: arrays, numbers, or pytrees of them. Arrays of more than 1 MiB are not looked at, which is
        counted (`skipped` in the snapshot): watch a norm of theirs.
    """
    if _disabled:
        return
    try:
        known = store.current()
        watched, steps = known.part(Watched), known.part(Wall).steps or None
        for name, value in values.items():
            row = watched.row(name)
            if row is None:
                row = watched.add(label(name), _call_site())
            watched.take(row, value, steps)
        if not watched.running and watched.pending and watched.begin():
            _start(known, watched)
    except Exception as error:
        with guarded("watch"):
            raise error


_disabled = config.disabled()


def _start(known: Store, watched: Watched) -> None:
    global _thread
    if _thread is None:
        atexit.register(_exit)  # runs before JAX's own, which was registered before
    _thread = threading.Thread(target=_look, args=(known, watched), name="jaxobs-watch", daemon=True)
    _thread.start()


_thread: threading.Thread | None = None
_exiting = False


def _exit() -> None:
    """At the interpreter's exit: no more looks, for JAX forgets its backends next."""
    global _exiting
    _exiting = True
    if _thread is not None:
        threads.join(_thread)


@guard("watch.thread")
def _look(known: Store, watched: Watched) -> None:
    idle = 0.0
    while True:
        time.sleep(_LOOK_SECONDS)
        if _exiting:
            return
        idle = 0.0 if watched.pending else idle + _LOOK_SECONDS
        look(known, watched)
        if idle >= _REST_SECONDS and watched.rest():
            return


def look(known: Store, watched: Watched) -> None:
    """Asks the values that have arrived, and records what turned non-finite."""
    with guarded("watch.look"):
        for event in watched.look():
            known.record(event)


def _call_site() -> str | None:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and (is_jax(frame.f_code.co_filename) or is_plumbing(frame.f_code.co_filename)):
        frame = frame.f_back
    return None if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
