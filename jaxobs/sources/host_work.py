"""Functions in Python that compiled programs call, and pauses of Python's garbage collector, counted as they happen."""

import contextlib
import gc
from typing import Any

from jaxobs.internals.code_events import MONITORS
from jaxobs.internals.host_callbacks import Watch
from jaxobs.reasons.naming import function_name
from jaxobs.sources.support.source import Source
from jaxobs.state.host_work import HostMeter
from jaxobs.state.wall import Wall

_COMPILING = ("trace", "compile", "cache_load")


class HostWorkSource(Source):
    """The source: nothing to sample."""

    def _begin(self) -> None:
        self._meter, self._watch = self._store.part(HostMeter), Watch(self._took)
        wall = self._store.part(Wall)
        self._meter.compiles = lambda: wall.category in _COMPILING

    def start(self) -> None:
        """Counts both, as far as this Python and this JAX let it."""
        gc.callbacks.append(self._meter.collected)
        if MONITORS:
            self._store.describe(capabilities={"host_callbacks": self._watch.start()})

    def stop(self) -> None:
        """Counts no more."""
        self._watch.stop()
        with contextlib.suppress(ValueError):  # the program has emptied the list
            gc.callbacks.remove(self._meter.collected)

    def after_fork(self) -> None:
        """In a forked child: counts from nothing."""
        self.stop()
        self._begin()
        self.start()

    def _took(self, function: Any, line: str, seconds: float | None) -> None:
        name = function_name(function) or ""
        self._meter.called("jax.debug.print" if name.endswith("._format_print_callback") else name, line, seconds)


source = HostWorkSource
