"""A bound on compilations for tests: what exceeds it fails with the reasons, not with a count."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from jaxobs import session, store
from jaxobs.facts import Compilation, Event

MOST_SHOWN = 20


class TooManyCompilesError(AssertionError):
    """More was compiled inside `max_compiles` than it allows. Its text lists each compilation with its reason."""


@contextmanager
def max_compiles(n: int, function: str | None = None, *, eager: bool = False) -> Iterator[list[Compilation]]:
    """Fails when more than `n` programs are compiled, or loaded from a cache, inside the block, on any thread.

        with jaxobs.testing.max_compiles(0):
            train_step(state, batch)

    Args:
      n: how many are allowed.
      function: counts only those of this function, by its `module.qualname` or the end of it: `train_step`.
      eager: counts operations that JAX dispatches by themselves as well.

    Yields:
      A list that the compilations are added to as they happen.

    Raises:
      TooManyCompilesError: when the block ends without an exception of its own and there were more.
    """
    found: list[Compilation] = []

    def watch(event: Event) -> None:
        if isinstance(event, Compilation) and (eager or not event.eager) and _matches(event.function, function):
            found.append(event)

    unsubscribe = store.current().subscribe(watch)
    installed_here = not store.current().installed
    if installed_here:
        session.install()
    try:
        yield found
    finally:
        unsubscribe()
        if installed_here:
            session.uninstall()
    if len(found) > n:
        raise TooManyCompilesError(_told(n, function, found))


def _matches(name: str, wanted: str | None) -> bool:
    return wanted is None or name == wanted or name.endswith("." + wanted)


def _told(n: int, function: str | None, found: list[Compilation]) -> str:
    whose = f" of `{function}`" if function is not None else ""
    lines = [f"{len(found)} compilations{whose}, where at most {n} are allowed:"]
    lines += [
        f"  {number}. {each.call_site or '?'}: {each.reason}" for number, each in enumerate(found[:MOST_SHOWN], 1)
    ]
    if len(found) > MOST_SHOWN:
        lines.append(f"  and {len(found) - MOST_SHOWN} more")
    return "\n".join(lines)
