"""`jaxobs.phase`: wall time of a category that jaxobs cannot see by itself."""

from __future__ import annotations

import difflib
import functools
import inspect
import time
from collections.abc import Callable
from typing import Any, TypeVar

from jaxobs import checkpoints, config, store
from jaxobs.checkpoints import Checkpoints, Mark
from jaxobs.errors import ParameterError
from jaxobs.guard import guard
from jaxobs.wall import Scope, Wall

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
        self._open: list[_Open] = []

    def __enter__(self) -> None:
        opened = None if off else _begin(self._name)
        if opened is not None:
            self._open.append(opened)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        if self._open:
            _end(self._open.pop(), failed=error is not None)

    def __call__(self, fun: F) -> F:
        """The function, with its calls counted."""
        name = self._name
        if inspect.iscoroutinefunction(fun):

            @functools.wraps(fun)
            async def call(*args: Any, **kwargs: Any) -> Any:
                with phase(name):
                    return await fun(*args, **kwargs)
        else:

            @functools.wraps(fun)
            def call(*args: Any, **kwargs: Any) -> Any:
                with phase(name):
                    return fun(*args, **kwargs)

        return call  # type: ignore[return-value]


class _Open:
    """A phase that is under way."""

    __slots__ = ("began", "mark", "scope", "told", "wall", "where")

    def __init__(self, wall: Wall, scope: Scope | None) -> None:
        self.wall = wall
        self.scope = scope
        self.where: Checkpoints | None = None
        self.mark = Mark()
        self.told = 0
        self.began = time.perf_counter()


@guard("phase.begin")
def _begin(name: str) -> _Open:
    current = store.current()
    wall = current.part(Wall)
    opened = _Open(wall, wall.enter(name))
    if name == "checkpoint":
        opened.where = current.part(Checkpoints)
        opened.mark, opened.told = checkpoints.mark(wall), opened.where.told
    return opened


@guard("phase.end")
def _end(opened: _Open, *, failed: bool) -> None:
    if opened.scope is not None:
        opened.wall.leave(opened.scope)
    if opened.where is not None:
        opened.where.observe("phase", time.perf_counter() - opened.began)
        if not failed and opened.where.told == opened.told:
            opened.where.saved(opened.mark)
