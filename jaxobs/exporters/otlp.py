"""OpenTelemetry: metrics, traces and findings, by OTLP or through the program's own providers.

The collector's answers are waited for on threads of OpenTelemetry's alone. What it doesn't take is dropped and counted.
"""

from jaxobs.base.config import Settings
from jaxobs.base.files.patience import Patience
from jaxobs.base.guard import guarded
from jaxobs.exporters.otel import providers, wanted
from jaxobs.facts.events import Event
from jaxobs.facts.findings import Finding
from jaxobs.facts.process import Exit
from jaxobs.state.store import Store

END_SECONDS = 2.0
"""Seconds that the program's end waits for the last delivery."""
EVERY_SECONDS = 5.0


class Otlp:
    """Instruments that are asked, and spans and events that are reported, until it is closed."""

    every = EVERY_SECONDS

    def __init__(self, store: Store) -> None:
        self._store = store
        self._exits = False
        """Whether the last event says that the process ends."""
        self._open()
        self._unsubscribe = store.subscribe(self._see)

    def _open(self) -> None:
        from jaxobs.exporters.otel import instruments, traces

        self._providers = found = providers.find(self._store)
        self._instruments = instruments.of(self._store, found.meter, found.points) if found.meter is not None else None
        self._traces = traces.Traces(self._store, found.tracer) if found.tracer is not None else None
        self._findings = traces.Findings(found.logger) if found.logger is not None else None
        self._waits = False
        """In a forked child, until it records something: nothing is opened before."""

    def _see(self, event: Event) -> None:
        if self._waits:
            self._open()
        self._exits = isinstance(event, Exit)
        if isinstance(event, Finding):
            if self._findings is not None:
                self._findings.see(event)
        elif self._traces is not None:
            self._traces.see(event)

    def sample(self) -> None:
        """Reports what is over without an event of its own."""
        if self._traces is not None and not self._waits:
            self._traces.sample()

    def after_fork(self) -> None:
        """In a forked child: silent until it uses JAX, and then with connections of its own."""
        self._providers.silence()
        if self._instruments is not None:
            self._instruments.forked()
        self._traces, self._waits = None, True

    def close(self) -> None:
        """Delivers what there is, for a while at most, and ends what was started here."""
        self._unsubscribe()
        if self._waits:
            return
        with guarded("otlp.last"):
            self.sample()
        patience = Patience(END_SECONDS)
        try:
            delivered = patience.do(self._providers.reachable)
            if delivered:  # else OpenTelemetry would try again for ten seconds
                patience.do(self._providers.end)
        except TimeoutError:
            delivered = False
        if not delivered:
            self._store.drop("otlp_end")
            self._providers.give_up()
        # At the process's end, the program's own providers collect once more, after this.
        if self._instruments is not None and not self._exits:
            self._instruments.silent = True


def exporter(store: Store, settings: Settings) -> Otlp | None:
    """Returns the exporter to OTLP, None if it is not wanted; raises `MissingExtraError` without its packages."""
    given = providers.given
    asked = settings.otlp if settings.otlp is not None or not given.any else True
    return Otlp(store) if wanted.wanted(asked) else None
