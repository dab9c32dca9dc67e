"""`jaxobs.phase`: wall time of a category that jaxobs cannot see by itself."""

import difflib
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

from jaxobs.base import config
from jaxobs.base.errors import ParameterError
from jaxobs.base.guard import guard, guarded
from jaxobs.instruments import uses
from jaxobs.state import checkpoints, store
from jaxobs.state.checkpoints import Checkpoints, Mark
from jaxobs.state.wall import Scope, Wall

F = TypeVar("F", bound=Callable[..., Any])

NAMES = ("checkpoint", "eval", "init")

off = config.disabled()
"""Whether `JAXOBS_DISABLED` was set when this was imported."""


class phase:  # noqa: N801 - read as a word: `with jaxobs.phase("eval"):`
    """Counts the time of a block, or of the calls of a function, as `checkpoint`, `eval` or `init`.

        with jaxobs.phase("checkpoint"):
            save(state)

        @jaxobs.phase("eval")
        def evaluate(state): ...

    Of the thread that runs the program only: what a background thread writes holds nobody up. What JAX compiles inside
    counts as compiling. A `checkpoint` that ends without an exception is taken for one that was saved completely,
    unless Orbax, which says so itself, is used inside.

    Args:
      name: `checkpoint`, `eval` or `init`.

    Raises:
      ParameterError: the name is another.
    """

    def __init__(self, name: str) -> None:
        if name not in NAMES:
            close = difflib.get_close_matches(str(name), NAMES, 1)
            meant = f" Did you mean `{close[0]}`?" if close else ""
            raise ParameterError(f"jaxobs.phase has no phase {name!r:.100}.{meant} Known phases: {', '.join(NAMES)}.")
        self._name = name
        self._taken: bool | uses.Uses = False
        self._opened: _Open | None = None

    def __enter__(self) -> None:
        if off:
            return
        # From here nothing is called until the object is taken: no other thread comes in between.
        if self._taken:
            self._again(sys._getframe(1))
            return
        self._taken = True
        self._opened = _begin(self._name)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        shared = self._taken is not True
        if shared and not self._one_ended(sys._getframe(1), error):
            return
        opened, self._opened = self._opened, None
        if shared:
            uses.released(self)
        else:
            self._taken = False
        if opened is not None:
            _end(opened, error)

    def _again(self, frame: FrameType) -> None:
        """Another use begins while one is open: one of its own."""
        another = phase(self._name)
        another.__enter__()
        with guarded("phase"):
            uses.began(self, frame, another)

    def _one_ended(self, frame: FrameType, error: BaseException | None) -> bool:
        with guarded("phase"):
            return uses.ended(self, frame, None if error is None else type(error), error)
        return False

    def __call__(self, fun: F) -> F:
        """The function, with its calls counted."""
        name = self._name
        return uses.each_call(fun, lambda: phase(name))


_NO_MARK = Mark()


class _Open:
    """A phase that is under way."""

    __slots__ = ("began", "mark", "scope", "told", "wall", "where")

    def __init__(self, wall: Wall, scope: Scope | None) -> None:
        self.wall = wall
        self.scope = scope
        self.where: Checkpoints | None = None
        self.mark = _NO_MARK
        self.told = 0
        self.began = time.perf_counter()


@guard("phase.begin")
def _begin(name: str) -> _Open:
    current = store.current()
    wall = current.part(Wall)
    opened = _Open(wall, wall.enter(name))
    if name == "eval" and opened.scope is not None:
        wall.evaluations += 1
    if opened.scope is not None:
        opened.scope.held = True
    if name == "checkpoint":
        opened.where = current.part(Checkpoints)
        opened.mark, opened.told = checkpoints.mark(wall), opened.where.told
    return opened


@guard("phase.end")
def _end(opened: _Open, error: BaseException | None) -> None:
    if opened.scope is not None:
        opened.wall.leave(opened.scope)
    if opened.where is not None:
        opened.where.observe("phase", time.perf_counter() - opened.began)
        if opened.where.told != opened.told:
            return  # a library tells of its saves itself
        if error is None:
            opened.where.saved(opened.mark)
        elif isinstance(error, Exception):
            opened.where.failed("phase")
