"""Exemplars from the histogram of compile phases to the program's own traces, in OpenMetrics.

If the program has OpenTelemetry and a span was active where something compiled, that span is the exemplar of the
phases; the span of the compilation itself, if jaxobs makes one.
"""

from __future__ import annotations

import math
import sys

from jaxobs.base.config import Settings
from jaxobs.exporters.forms import traced
from jaxobs.facts.compilations import Compilation
from jaxobs.facts.events import Event
from jaxobs.state.store import Store

IN_MEMORY = True
"""It writes nothing: a scrape takes along what it has found."""


class CompileExemplars:
    """Looks at the current span on the thread that compiled."""

    every = math.inf

    def __init__(self, store: Store) -> None:
        self._store = store
        self._unsubscribe = store.subscribe(self._see)

    def _see(self, event: Event) -> None:
        # Not imported here: a program that has not imported it has no span.
        trace = sys.modules.get("opentelemetry.trace")
        if trace is not None and isinstance(event, Compilation):
            traced.compiled(self._store, event, trace.get_current_span().get_span_context())

    def sample(self) -> None:
        """Nothing to do between events."""

    def after_fork(self) -> None:
        """Nothing of the parent's is kept."""

    def close(self) -> None:
        """Looks no more."""
        self._unsubscribe()


def exporter(store: Store, settings: Settings) -> CompileExemplars:
    """What the folder's discovery asks every exporter for."""
    return CompileExemplars(store)
