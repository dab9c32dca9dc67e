"""`jaxobs.step` and `jaxobs.steps`: where the program says that a step begins and ends.

A scope costs well under two microseconds, waits for nothing, and lets the program's own exceptions pass as they are.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterable
from sys import _getframe
from time import perf_counter
from types import FrameType, TracebackType
from typing import Any, TypeVar, cast, overload

from jaxobs.base import config
from jaxobs.base.guard import guarded
from jaxobs.instruments import uses
from jaxobs.state import store
from jaxobs.state.loops import MOST_WAITING, Loop, Loops, Thread, number_of
from jaxobs.state.store import Store
from jaxobs.state.wall import Scope, Wall

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

_thread = Thread()
_known: dict[str, Loop] = {}
_known_to: Store | None = None
_known_in: Any = None
"""The parts of the store when these loops were looked up: it forgets them at a reset and in a forked child."""
_disabled: bool | None = None


def _loop(name: str) -> Loop | None:
    """The loop of that name; None where the library is turned off."""
    global _disabled, _known_in, _known_to
    if _disabled is None:
        _disabled = config.disabled()
    if _disabled:
        return None
    with guarded("step"):
        current = store.current()
        if current._parts is not _known_in:
            _known.clear()
            _known_to, _known_in = current, current._parts
        found = current.part(Loops).loop(name, current.part(Wall), lambda: current.step_calls())
        if found.name == name:
            _known[name] = found
        return found
    return None


class step:  # noqa: N801 - read as a word: `with jaxobs.step("train"):`
    """A step of a named loop.

        for batch in loader:
            with jaxobs.step("train", items=len(batch)):
                state, loss = train_step(state, batch)

    Steps may be nested and run on any thread. As a decorator, `@jaxobs.step("train")`, each call is a step, that of an
    `async def` or a generator until it ends. One object may be used again and again, also while it is open: each use
    is a step. The time of a step runs from the end of the one before it on the same thread to its own end; nothing
    waits for the device. A step that raises does not count.

    Args:
      name: of the loop.
      items: samples or tokens in the step, a number; also to be set inside the block, as `items` of what `as` gives,
        for this step alone. An array on a device is passed over: to read it would mean to wait for it.

    Raises:
      TypeError: `name` is not a text.
    """

    __slots__ = ("_apart", "_calls", "_entered", "_given", "_loop", "_name", "_scope", "_taken", "items")

    def __init__(self, name: str = "train", items: float | None = None) -> None:
        if type(name) is not str and not isinstance(name, str):
            raise TypeError(
                f'`jaxobs.step` needs the name of a loop, such as `jaxobs.step("train")`, but got '
                f"{type(name).__qualname__}: {name!r:.80}."
            )
        self._name = name
        self.items = items
        self._taken: bool | uses.Uses = False

    def __enter__(self, waiting: Scope | None = None, held: bool = True) -> step:
        """Begins the step; at the end of `waiting`, the wait for its input, if that is given."""
        # From here nothing is called until the object is taken: no other thread comes in between.
        if self._taken:
            return self._again(_getframe(1))
        self._taken = True
        self._given = self.items
        loop = _known.get(self._name)
        if loop is None or _known_to._parts is not _known_in:  # type: ignore[union-attr]  # set with the first loop
            loop = _loop(self._name)
            if loop is None:
                self._taken = False
                return self
        self._loop = loop
        scope: Scope | None = None
        try:
            wall = loop.wall
            self._scope = scope = wall.enter("step") if waiting is None else wall.follow(waiting, "step")
            self._calls = loop.calls() if loop.looks > 0 else None
            if scope is None:
                self._entered = perf_counter()
            else:
                if held:
                    scope.held = True
                apart = wall.known_apart
                self._apart = wall.apart(scope) if apart is None or scope.apart else apart
        except BaseException as failure:
            self._taken = False
            if scope is not None:
                scope.wall.leave(scope)
            _failed(failure)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        shared = self._taken is not True
        if shared and not self._one_ended(_getframe(1), kind):
            return
        # From here nothing is called until all is read: then another thread may take the object.
        # One by one: to pack and unpack them costs a twentieth of the scope.
        loop = self._loop
        scope = self._scope
        items = self.items
        calls = self._calls
        if scope is None:
            entered = self._entered
        else:
            apart = self._apart
        self.items = self._given
        if shared:
            uses.released(self)
        else:
            self._taken = False
        try:
            looked = None if calls is None else loop.look(calls)
            if items is not None and type(items) is not int:
                items = number_of(items)
            marks = loop.marks
            if scope is None:
                mark = (_thread.number, entered, perf_counter(), 0.0, 0.0, items, kind is None, looked)
            else:
                wall = loop.wall
                if scope.ended is None:
                    wall.leave(scope)
                ended = scope.ended or perf_counter()
                left = wall.known_apart
                if left is None or scope.apart:
                    left = wall.apart(scope)
                mark = (0, scope.began, ended, apart, left, items, kind is None, looked)
            marks.append(mark)
            if len(marks) > MOST_WAITING:
                loop.drain()
        except Exception as failure:
            _failed(failure)

    def _again(self, frame: FrameType) -> step:
        """Another use begins while one is open: one of its own."""
        another = step(self._name, self._given)
        another.__enter__()
        with guarded("step"):
            uses.began(self, frame, another)
        return another

    def _one_ended(self, frame: FrameType, kind: type[BaseException] | None) -> bool:
        with guarded("step"):
            return uses.ended(self, frame, kind, None)
        return False

    def __call__(self, fun: F) -> F:
        name, items = self._name, self.items
        return uses.each_call(fun, lambda: step(name, items))


@overload
def steps(
    iterable: Iterable[T], name: str = "train", items: float | Callable[[T], float] | None = None
) -> Generator[T, None, None]: ...
@overload
def steps(
    iterable: AsyncIterable[T], name: str = "train", items: float | Callable[[T], float] | None = None
) -> AsyncIterator[T]: ...
def steps(
    iterable: Iterable[T] | AsyncIterable[T], name: str = "train", items: float | Callable[[T], float] | None = None
) -> Generator[T, None, None] | AsyncIterator[T]:
    """Yields the same elements, and counts each turn of the loop over them as a step.

        for batch in jaxobs.steps(loader, "train", items=len):
            state, loss = train_step(state, batch)

    A step begins when the loop gets an element and ends when it asks for the next; the one that `break` ends counts.
    What `async for` goes over is gone over by `async for`.

    Args:
      iterable: what the loop goes over.
      name: of the loop.
      items: samples or tokens in a step: a number, or what to call with the element to get it.

    Raises:
      TypeError: `name` is not a text.
    """
    turn = step(name, None if callable(items) else items)  # a wrong name is told here, not when the loop begins
    turn._scope = None
    count = items if callable(items) else None
    if isinstance(iterable, AsyncIterable) and not isinstance(iterable, Iterable):
        return _AsyncSteps(aiter(iterable), turn, count)
    return _stepping(iter(cast("Iterable[T]", iterable)), turn, count)


def _stepping(elements: Any, turn: step, count: Callable[[Any], Any] | None) -> Generator[Any, None, None]:
    loop = _loop(turn._name)
    if loop is None:
        yield from elements
        return
    wall, follow, ending = loop.wall, loop.wall.follow, sys.is_finalizing
    # Among the tasks of an event loop, what is open when another's scope ends goes on. A generator that lies about
    # between two calls of `next` does not.
    held = uses.in_event_loop()
    waiting: Scope | None = None
    while True:
        # The wait for the next element begins as the step ends.
        try:
            waiting = follow(turn._scope, "input_wait")
        except Exception as failure:
            _failed(failure)
        turn.__exit__(None, None, None)
        try:
            element = next(elements)
        except BaseException as error:
            try:
                if waiting is not None:
                    wall.leave(waiting)
            except Exception as failure:
                _failed(failure)
            if isinstance(error, StopIteration):
                return
            raise
        turn.__enter__(waiting, held)
        if count is not None:
            turn.items = _counted(count, element)
        try:
            yield element
        except BaseException as error:
            if ending():  # the modules have lost their contents
                raise
            try:
                if turn._scope is not None:
                    wall.leave(turn._scope, alone=True)  # it may be collected at any time, with other scopes open
            except Exception as failure:
                _failed(failure)
            turn.__exit__(None if isinstance(error, GeneratorExit) else type(error), None, None)
            raise


class _AsyncSteps:
    """`steps` over what `async for` takes. No generator: the event loop would close one some time after a `break`."""

    def __init__(self, elements: Any, turn: step, count: Callable[[Any], Any] | None) -> None:
        self._elements, self._turn, self._count = elements, turn, count

    def __aiter__(self) -> _AsyncSteps:
        return self

    async def __anext__(self) -> Any:
        turn, waiting = self._turn, None
        wall = None
        try:
            loop = _loop(turn._name)
            if loop is not None:
                wall = loop.wall
                waiting = wall.follow(turn._scope, "input_wait")
                if waiting is not None:
                    waiting.held = True
        except Exception as failure:
            _failed(failure)
        turn.__exit__(None, None, None)
        try:
            element = await self._elements.__anext__()
        except BaseException:
            with guarded("step"):
                if wall is not None and waiting is not None:
                    wall.leave(waiting)
            raise
        turn.__enter__(waiting)
        if self._count is not None:
            turn.items = _counted(self._count, element)
        return element

    async def aclose(self) -> None:
        """Ends the step that is open, and the iterator."""
        self._end()
        close = getattr(self._elements, "aclose", None)
        if close is not None:
            await close()

    def __del__(self) -> None:
        if not sys.is_finalizing():
            with contextlib.suppress(AttributeError):  # it was never made
                self._end()

    def _end(self) -> None:
        turn = self._turn
        with guarded("step"):
            if turn._scope is not None:
                turn._scope.wall.leave(turn._scope, alone=True)
        turn.__exit__(None, None, None)


def _counted(count: Callable[[Any], Any], element: Any) -> float | None:
    with guarded("step.items"):
        return cast("float | None", count(element))
    return None


def _failed(failure: BaseException) -> None:
    """Counts a failure of ours. Out of line: a guard around each scope would cost a fifth of it."""
    with guarded("step"):
        raise failure
