"""A bound on compilations for tests: what exceeds it fails with the reasons, not with a count."""

from __future__ import annotations

import functools
import inspect
import os
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, TypeVar, cast

from jaxobs.base import config
from jaxobs.facts.compilations import Compilation
from jaxobs.testing.watching import DISABLED, BlindError, Watch, clear_caches, watching

__all__ = ["BlindError", "TooManyCompilesError", "max_compiles"]

F = TypeVar("F", bound=Callable[..., Any])

MOST_SHOWN = 20


class TooManyCompilesError(AssertionError):
    """More was compiled inside `max_compiles` than it allows. Its text lists each compilation with its reason."""


class max_compiles:  # noqa: N801 - read as words: `with max_compiles(0):`
    """Fails when more than `n` programs are compiled, or loaded from a cache, inside the block, on any thread.

        with jaxobs.testing.max_compiles(0):
            train_step(state, batch)

        @jaxobs.testing.max_compiles(1, function="train_step", fresh=True)
        def test_training(): ...

    JAX keeps what it compiled for the life of the process: what an earlier test compiled is not recompiled, and not
    counted. With `fresh` the count depends on nothing before the block.

    The block's value is a list that the compilations are added to as they happen.

    Args:
      n: how many are allowed.
      function: counts only those of this function, by its `module.qualname` or the end of it: `train_step`.
      eager: counts operations that JAX dispatches by themselves as well.
      fresh: calls `jax.clear_caches()` first.

    Raises:
      TooManyCompilesError: when the block ends without an exception of its own and there were more.
      BlindError: jaxobs could not see all compilations.
      TypeError, ValueError: an argument is of another type.
    """

    def __init__(self, n: int, function: str | None = None, *, eager: bool = False, fresh: bool = False) -> None:
        if isinstance(n, bool) or not isinstance(n, int):
            raise TypeError(f"`n` is {n!r:.100}, but must be an integer: how many compilations are allowed.")
        if n < 0:
            raise ValueError(f"`n` is {n}, but must be 0 or more: how many compilations are allowed.")
        if function is not None and not isinstance(function, str):
            raise TypeError(
                f"`function` is {function!r:.100}, but must be a name: its `module.qualname` or the end of it."
            )
        self.n, self.function, self.eager, self.fresh = n, function, eager, fresh
        self._open: list[tuple[ExitStack, Watch | None]] = []

    def check(self, compilations: Sequence[Compilation]) -> None:
        """Raises `TooManyCompilesError` if more of those that count are among these than are allowed."""
        __tracebackhide__ = True  # the reasons are enough for pytest to show
        found = [each for each in compilations if self.counts(each)]
        if len(found) > self.n:
            raise TooManyCompilesError(_told(self.n, self.function, found))

    def counts(self, each: Compilation) -> bool:
        """Returns whether the bound is about this compilation."""
        wanted = self.function is None or f".{each.function}".endswith(f".{self.function}")
        return wanted and (self.eager or not each.eager)

    def __enter__(self) -> list[Compilation]:
        stack = ExitStack()
        if config.disabled():
            warnings.warn(f"{DISABLED} `max_compiles` lets everything pass.", stacklevel=2)
            self._open.append((stack, None))
            return []
        if self.fresh:
            clear_caches()
        watch = stack.enter_context(watching(self.counts))
        self._open.append((stack, watch))
        return watch.compilations

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        __tracebackhide__ = True
        stack, watch = self._open.pop()
        with stack:
            if watch is None or error is not None:
                return
            watch.assert_saw_all()
        self.check(watch.compilations)

    def __call__(self, fun: F) -> F:
        """Holds each call of `fun` to the bound; a coroutine function until it is awaited to its end."""
        if inspect.isgeneratorfunction(fun) or inspect.isasyncgenfunction(fun):
            raise TypeError(
                f"`{fun.__qualname__}` is a generator function, which runs after its call has returned. "
                "Write `with max_compiles(...):` inside it."
            )
        bounded: Callable[..., Any]
        if inspect.iscoroutinefunction(fun):

            @functools.wraps(fun)
            async def bounded(*args: Any, **kwargs: Any) -> Any:
                with self._another():
                    return await fun(*args, **kwargs)

        else:

            @functools.wraps(fun)
            def bounded(*args: Any, **kwargs: Any) -> Any:
                with self._another():
                    return fun(*args, **kwargs)

        return cast(F, bounded)

    def _another(self) -> max_compiles:
        """Returns a bound for calls that may overlap."""
        return type(self)(self.n, self.function, eager=self.eager, fresh=self.fresh)


def _told(n: int, function: str | None, found: Sequence[Compilation]) -> str:
    whose = f" of `{function}`" if function is not None else ""
    are = "is" if n == 1 else "are"
    lines = [f"{len(found)} compilation{'s' * (len(found) != 1)}{whose}, where at most {n} {are} allowed:"]
    lines += [f"  {number}. {place_and_reason(each)}" for number, each in enumerate(found[:MOST_SHOWN], 1)]
    if len(found) > MOST_SHOWN:
        lines.append(f"  and {len(found) - MOST_SHOWN} more")
    return "\n".join(lines)


def place_and_reason(compilation: Compilation) -> str:
    """`file:line: why`, the file from the working directory if it is in there."""
    place = (compilation.call_site or "?").removeprefix(os.path.join(os.getcwd(), ""))
    return f"{place}: {compilation.reason}"
