"""A scope object in several uses at once: which end belongs to which beginning, and each call of a function as one.

A `with` statement tells `__exit__` nothing but the object. Where that is open more than once, in threads, generators,
tasks or recursions, the frame that the statement is in is what its beginning and its end have in common.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable
from threading import get_ident
from types import FrameType
from typing import Any, Protocol, TypeVar, cast

from jaxobs.base import threads

F = TypeVar("F", bound=Callable[..., Any])

# Reentrant: a signal handler of the program may use the same object while this thread is in here.
_lock = threads.RLock()


class Scope(Protocol):
    """An object whose first use is in itself; `_taken` is False, True while that is open, or all about several."""

    _taken: bool | Uses

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: Any, /) -> None: ...


class Uses:
    """The uses of one object, where there are or were several at once."""

    def __init__(self, own: bool) -> None:
        self.own = own
        """Whether the use that is in the object itself is open."""
        self.others: list[tuple[int | None, tuple[int, int], Scope]] = []
        """The number of the frame whose `with` statement it is, None where `__enter__` was called in another way; the
        thread and task; and the object that the use is in."""


def began(scope: Scope, frame: FrameType, another: Scope) -> None:
    """A use of the scope, which is open, began in that frame, the one of the caller of `__enter__`: in `another`."""
    # An ExitStack, or a scope of the program's around this one, calls `__enter__` by its name and returns.
    number = None if "__enter__" in frame.f_code.co_names else id(frame)
    with _lock:
        several = Uses(own=False)
        # Nothing is called from here until they are there: the first use may end meanwhile, which takes no lock.
        uses = scope._taken
        if uses is True or uses is False:
            several.own = uses
            scope._taken = uses = several
        uses.others.append((number, _flow(), another))


def ended(scope: Scope, frame: FrameType, kind: type[BaseException] | None, error: BaseException | None) -> bool:
    """A use of the scope, of which there are several or none, ends in that frame, and is left if it is in another.

    Returns:
      Whether it is the scope's own: then `released` must be called as soon as nothing of it is needed any more.
    """
    with _lock:
        uses = scope._taken
        if not isinstance(uses, Uses):
            return uses
        position = _position(uses, id(frame), _flow())
        another = None if position is None else uses.others.pop(position)[2]
        if another is None:
            return uses.own
        if not uses.others:
            scope._taken = uses.own
    another.__exit__(kind, error, None)
    return False


def released(scope: Scope) -> None:
    """The scope's own use is over: another may be in the object from now on."""
    with _lock:
        uses = scope._taken
        if isinstance(uses, Uses) and uses.others:
            uses.own = False
        else:
            scope._taken = False


def _position(uses: Uses, number: int, flow: tuple[int, int]) -> int | None:
    """Which of the others ends there: where neither a statement nor a thread and task tell, the object's own use."""
    newest = range(len(uses.others) - 1, -1, -1)
    for at in newest:
        if uses.others[at][0] == number:
            return at
    for at in newest:
        if uses.others[at][:2] == (None, flow):
            return at
    if uses.own:
        return None
    return next((at for at in newest if uses.others[at][1] == flow), len(uses.others) - 1 if uses.others else None)


def in_event_loop() -> bool:
    """Returns whether an event loop of asyncio runs on this thread."""
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None


def _flow() -> tuple[int, int]:
    """This thread, and the task that runs on it."""
    asyncio, task = sys.modules.get("asyncio"), None
    if asyncio is not None:
        with contextlib.suppress(RuntimeError):  # no event loop runs here
            task = asyncio.current_task()
    return get_ident(), id(task)


def each_call(fun: F, scope: Callable[[], contextlib.AbstractContextManager[Any]]) -> F:
    """The function with each call in a scope of its own, as if the `with` was around its body.

    A coroutine, a generator or an asynchronous generator is in its scope from its first step to its end.
    """
    call: Any
    if inspect.isasyncgenfunction(fun):

        async def call(*args: Any, **kwargs: Any) -> Any:
            with scope():
                async with contextlib.aclosing(fun(*args, **kwargs)) as elements:
                    step: Callable[[], Any] = elements.__anext__
                    while True:
                        try:
                            element = await step()
                        except StopAsyncIteration:
                            return
                        try:
                            step = functools.partial(elements.asend, (yield element))
                        except GeneratorExit:
                            raise
                        except BaseException as error:
                            step = functools.partial(elements.athrow, error)
    elif inspect.iscoroutinefunction(fun):

        async def call(*args: Any, **kwargs: Any) -> Any:
            with scope():
                return await fun(*args, **kwargs)
    elif inspect.isgeneratorfunction(fun):

        def call(*args: Any, **kwargs: Any) -> Any:
            with scope():
                return (yield from fun(*args, **kwargs))
    else:

        def call(*args: Any, **kwargs: Any) -> Any:
            with scope():
                return fun(*args, **kwargs)

    wrapped: Any = functools.wraps(fun)(call)
    return cast("F", wrapped)
