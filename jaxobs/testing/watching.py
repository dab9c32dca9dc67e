"""Watching a stretch of a test: every compilation in it, and whether all of them were seen.

jaxobs is installed for as long as somebody watches, if it was not installed already.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jaxobs.base import guard, threads
from jaxobs.facts.compilations import Compilation
from jaxobs.facts.events import Event
from jaxobs.session import lifecycle
from jaxobs.state import store

DISABLED = "`JAXOBS_DISABLED` is set, so jaxobs sees no compilations."

_lock = threads.Lock()
_watchers = 0
_installed_here = False


class BlindError(AssertionError):
    """Compilations may have escaped the watch, so that their number proves nothing. The text says why."""


class Watch:
    """Compilations since the watch began; the list grows while the watch goes on."""

    def __init__(self) -> None:
        self.compilations: list[Compilation] = []
        self._failed_before = _failures()

    def assert_saw_all(self) -> None:
        """Raises `BlindError` if jaxobs could not look; call it while the watch goes on."""
        failed = _failures() - self._failed_before
        if failed:
            places = ", ".join(f"`{place}`" for place in sorted(failed))
            raise BlindError(
                f"jaxobs failed in {places}, so compilations may be missing from the count. "
                "The log has the traceback, from the logger `jaxobs`. Report it with the version of JAX."
            )
        if not store.current().installed:
            raise BlindError(
                "jaxobs was uninstalled inside the block, so compilations may be missing from the count. "
                "Call `jaxobs.uninstall()` after the block."
            )


@contextmanager
def watching(counts: Callable[[Compilation], bool]) -> Iterator[Watch]:
    """Sees every compilation that `counts`, on any thread, until the block ends."""
    watch = Watch()

    def see(event: Event) -> None:
        if isinstance(event, Compilation) and counts(event):
            watch.compilations.append(event)

    unsubscribe = store.current().subscribe(see)
    _begin()
    try:
        yield watch
    finally:
        unsubscribe()
        _end()


def clear_caches() -> None:
    """Has JAX forget what it compiled in this process, so that a test's compilations depend on nothing before it."""
    import jax

    jax.clear_caches()


def _begin() -> None:
    global _watchers, _installed_here
    with _lock:
        if not store.current().installed:
            lifecycle.install()
            _installed_here = True
        _watchers += 1
        store.current().costs_wanted += 1


def _end() -> None:
    global _watchers, _installed_here
    with _lock:
        _watchers -= 1
        store.current().costs_wanted -= 1
        if _watchers == 0 and _installed_here:
            _installed_here = False
            lifecycle.uninstall()


def _failures() -> Counter[str]:
    """Returns how often jaxobs failed where it looks at compilations, by place."""
    looking = ("compilations.", "start jaxobs.sources.compilations", "session.sources")
    return Counter({place: n for place, n in guard.internal_errors().items() if place.startswith(looking)})
