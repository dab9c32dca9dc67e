"""`jaxobs.step` and `jaxobs.steps`: where the program says that a step begins and ends.

A scope costs well under two microseconds, waits for nothing, and lets the program's own exceptions pass as they are.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Generator, Iterable
from time import perf_counter
from types import TracebackType
from typing import Any, TypeVar, cast

from jaxobs import config, store
from jaxobs.guard import guarded
from jaxobs.loops import MOST_WAITING, Loop, Loops, Thread, number_of
from jaxobs.store import Store
from jaxobs.wall import Scope, Wall

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

_thread = Thread()
_known: dict[str, Loop] = {}
_known_to: Store | None = None
_known_in: Any = None
"""What the store keeps by kind, when these loops were looked up: it forgets them at a reset and in a forked child."""
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
        found = current.part(Loops).loop(name, current.part(Wall), current.calls)
        if found.name == name:
            _known[name] = found
        return found
    return None


class step:  # noqa: N801 - read as a word: `with jaxobs.step("train"):`
    """One step of a named loop.

        for batch in loader:
            with jaxobs.step("train", items=len(batch)):
                state, loss = train_step(state, batch)

    Steps may be nested and run on any thread. As a decorator, `@jaxobs.step("train")`, each call is a step. The time of
    a step runs from the end of the one before it on the same thread to its own end; nothing waits for the device. A
    step that raises does not count.

    Args:
      name: of the loop.
      items: samples or tokens in the step, a number; also to be set inside the block, as `items` of the scope. An array
        on a device is passed over: to read it would mean to wait for it.

    Raises:
      TypeError: `name` is no text.
    """

    __slots__ = ("_apart", "_calls", "_entered", "_loop", "_name", "_open", "_scope", "items")

    def __init__(self, name: str = "train", items: float | None = None) -> None:
        if name.__class__ is not str and not isinstance(name, str):
            raise TypeError(
                f'`jaxobs.step` needs the name of a loop, as in `jaxobs.step("train")`, got {type(name).__qualname__}: '
                f"{name!r:.80}."
            )
        self._name = name
        self.items = items
        found = _known.get(name)
        known = found is not None and _known_to is not None and _known_to._parts is _known_in
        self._loop = found if known else _loop(name)
        self._scope: Scope | None = None
        self._open = False

    def __enter__(self, waiting: Scope | None = None) -> step:
        """It begins; as the wait for what it needs ends, if that is given."""
        loop = self._loop
        if loop is None:
            return self
        try:
            wall = loop.wall
            self._scope = scope = wall.enter("step") if waiting is None else wall.follow(waiting, "step")
            self._calls = loop.calls() if loop.looks > 0 else None
            if scope is None:
                self._entered, self._apart = perf_counter(), 0.0
            else:
                self._entered, self._apart = scope.began, wall.apart(scope)
            self._open = True
        except Exception as failure:
            _failed(failure)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._open:
            return
        self._open = False
        try:
            loop, scope, items = self._loop, self._scope, self.items
            assert loop is not None
            looked = None if self._calls is None else loop.look(self._calls)
            if items is not None and items.__class__ is not int:
                items = number_of(items)
            marks = loop.marks
            if scope is None:
                mark = (_thread.number, self._entered, perf_counter(), 0.0, 0.0, items, kind is None, looked)
            else:
                wall = loop.wall
                if scope.ended is None:
                    wall.leave(scope)
                ended = scope.ended or perf_counter()
                mark = (0, self._entered, ended, self._apart, wall.apart(scope), items, kind is None, looked)
            marks.append(mark)
            if len(marks) > MOST_WAITING:
                loop.drain()
        except Exception as failure:
            _failed(failure)

    def __call__(self, fun: F) -> F:
        name, items = self._name, self.items

        @functools.wraps(fun)
        def stepping(*args: Any, **kwargs: Any) -> Any:
            with step(name, items):
                return fun(*args, **kwargs)

        return stepping  # type: ignore[return-value]


def steps(
    iterable: Iterable[T], name: str = "train", items: float | Callable[[T], float] | None = None
) -> Generator[T, None, None]:
    """The same elements, and each turn of the loop over them is a step.

        for batch in jaxobs.steps(loader, "train", items=len):
            state, loss = train_step(state, batch)

    A step begins when the loop gets an element and ends when it asks for the next; the one that `break` ends counts.

    Args:
      iterable: what the loop goes over.
      name: of the loop.
      items: samples or tokens in a step: a number, or what to call with the element to get it.

    Raises:
      TypeError: `name` is no text.
    """
    turn = step(name, None if callable(items) else items)  # a wrong name is told here, not when the loop begins
    return _stepping(iter(iterable), turn, items if callable(items) else None)


def _stepping(elements: Any, turn: step, count: Callable[[Any], Any] | None) -> Generator[Any, None, None]:
    loop = turn._loop
    if loop is None:
        yield from elements
        return
    wall, follow, ending = loop.wall, loop.wall.follow, sys.is_finalizing
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
        turn.__enter__(waiting)
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


def _counted(count: Callable[[Any], Any], element: Any) -> float | None:
    with guarded("step.items"):
        return cast("float | None", count(element))
    return None


def _failed(failure: Exception) -> None:
    """Counts a failure of ours. Out of line: a guard around each scope would cost a fifth of it."""
    with guarded("step"):
        raise failure
