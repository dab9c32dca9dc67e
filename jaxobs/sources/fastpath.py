"""Fast-path misses of instrumented functions: watched while jaxobs is installed, and before by whoever instruments.

The wrappers begin it themselves (see `jaxobs.state.fastpath`); here is what installing and uninstalling do to it.
"""

from jaxobs.sources.support.source import Source
from jaxobs.state import fastpath


class FastPath(Source):
    """The source: nothing to sample, an interpreter's tool number to take and to give back."""

    def start(self) -> None:
        """Watches again what an `uninstall` left."""
        fastpath.resume()

    def stop(self) -> None:
        """Gives back what others may need."""
        fastpath.pause()


source = FastPath
