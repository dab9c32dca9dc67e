"""Fast-path misses of instrumented functions: watched while jaxobs is installed, and before by whoever instruments.

The wrappers begin it themselves (see `jaxobs.fastpath`); here is what installing and uninstalling do to it.
"""

from __future__ import annotations

from jaxobs import fastpath
from jaxobs.store import Store


class FastPath:
    """The source: nothing to sample, an interpreter's tool number to take and to give back."""

    def start(self) -> None:
        """Watches again what an `uninstall` left."""
        fastpath.resume()

    def stop(self) -> None:
        """Gives back what others may need."""
        fastpath.pause()

    def after_fork(self) -> None:
        """The child's wrappers go on as they are."""

    def sample(self) -> None:
        """Nothing to sample."""


def source(store: Store) -> FastPath:
    """The source for a session; it has no settings."""
    return FastPath()
