"""Waits of a program for its checkpoint that no event reports: methods of Orbax and Flax, each in a wrapper.

Orbax 0.12 reports the waits of `CheckpointManager` alone, 0.11 of none, nor of saves and restores that block. A
method is replaced when its module has been imported, and put back at the end; the wrapper's own frame is taken out of
the traceback of what the method raises.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from jaxobs.base import threads
from jaxobs.base.guard import guard, guarded
from jaxobs.base.import_hooks import when_imported

_CHECKPOINTER = "orbax.checkpoint._src.checkpointers.checkpointer"
_ASYNC = "orbax.checkpoint._src.checkpointers.async_checkpointer"
_RUNNER = "_src.synchronization.thread_utils"
METHODS = (
    ("orbax.checkpoint.checkpoint_manager", "CheckpointManager", "wait_until_finished", "wait"),
    (_ASYNC, "AsyncCheckpointer", "wait_until_finished", "wait"),
    (_CHECKPOINTER, "Checkpointer", "save", "save"),
    (_CHECKPOINTER, "Checkpointer", "restore", "restore"),
    (f"orbax.checkpoint.experimental.v1.{_RUNNER}", "BackgroundThreadRunner", "result", "wait"),
    (f"orbax.checkpoint.v1.{_RUNNER}", "BackgroundThreadRunner", "result", "wait"),
    ("flax.training.checkpoints", "AsyncManager", "wait_previous_save", "wait"),
)
"""Module, class, method and operation, as of Orbax 0.11 and 0.12 and Flax 0.12; what is not there is passed over."""

Began = Callable[[str], Any]
Ended = Callable[[str, Any, BaseException | None], None]

_lock = threads.RLock()
_watcher: tuple[Began, Ended] | None = None
_awaited = False
_replaced: list[tuple[type, str, Any, Any]] = []


def watch(began: Began, ended: Ended) -> None:
    """Has the latest watcher called on the waiting thread: `began(operation)`, `ended(operation, result, error)`."""
    global _awaited, _watcher
    with _lock:
        _watcher = guard("checkpoint_waits.began")(began), guard("checkpoint_waits.ended")(ended)
        for method in METHODS:
            if method[0] in sys.modules:
                _replace(*method)
            elif not _awaited:
                when_imported(method[0], functools.partial(_replace, *method))
        _awaited = True


def unwatch() -> None:
    """Puts the methods back."""
    global _watcher
    with _lock:
        _watcher = None
        while _replaced:
            kind, method, original, ours = _replaced.pop()
            with guarded("checkpoint_waits.unwatch"):
                if vars(kind).get(method) is ours:  # else somebody has wrapped it once more
                    setattr(kind, method, original)


def _replace(module: str, name: str, method: str, operation: str) -> None:
    with _lock:
        kind = getattr(sys.modules[module], name, None)
        original = vars(kind).get(method) if isinstance(kind, type) else None
        if _watcher is None or original is None or any(each[3] is original for each in _replaced):
            return
        assert isinstance(kind, type)
        ours = _waiting(original, operation)
        setattr(kind, method, ours)
        _replaced.append((kind, method, original, ours))


def _waiting(method: Callable[..., Any], operation: str) -> Callable[..., Any]:
    @functools.wraps(method)
    def wait(*args: Any, **kwargs: Any) -> Any:
        watcher = _watcher
        began = None if watcher is None else watcher[0](operation)
        raised: BaseException | None = None
        try:
            return method(*args, **kwargs)
        except BaseException as error:
            raised = error
            if error.__traceback__ is not None:
                BaseException.with_traceback(error, error.__traceback__.tb_next)
            raise
        finally:
            if watcher is not None:
                watcher[1](operation, began, raised)
            del raised  # else the frame and the exception would keep each other

    return wait
