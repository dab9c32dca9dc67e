"""Exemplars from the histogram of compile phases to the program's own traces, in OpenMetrics.

If the program has OpenTelemetry and a span was active where something compiled, that span is the exemplar of the
phases; the span of the compilation itself, if jaxobs makes one.
"""

import sys

from jaxobs.facts.compilations import Compilation
from jaxobs.facts.events import Event
from jaxobs.sources.support.source import Subscriber
from jaxobs.state import exemplars


class CompileExemplars(Subscriber):
    """The source: looks at the current span on the thread that compiled."""

    def _on_event(self, event: Event) -> None:
        # Not imported here: a program that has not imported it has no span.
        trace = sys.modules.get("opentelemetry.trace")
        if trace is not None and isinstance(event, Compilation):
            exemplars.compiled(self._store, event, trace.get_current_span().get_span_context(), unless_known=True)


source = CompileExemplars
