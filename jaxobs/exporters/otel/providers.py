"""Providers of instruments, tracers and loggers: handed in, the program's global ones, or made by the variables."""

from __future__ import annotations

import contextlib
import os
import platform
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jaxobs.base.errors import MissingExtraError
from jaxobs.base.version import __version__
from jaxobs.exporters.otel import counting, wanted
from jaxobs.exporters.otel.points import Points
from jaxobs.state.store import Store

NAME = "jaxobs"
"""Name of the instrumentation scope."""
FLUSH_MILLISECONDS = 2000
CONNECT_SECONDS = 0.3
_REASONS = {"metrics": "otlp_metrics", "traces": "otlp_spans", "logs": "otlp_logs"}
"""Why something is missing, in `jaxobs_dropped_exports_total`."""


@dataclass(slots=True)
class Given:
    """Providers that the program handed in; None where it did not."""

    meter: Any = None
    tracer: Any = None
    logger: Any = None

    @property
    def any(self) -> bool:
        """True if there is a provider."""
        return not (self.meter is None and self.tracer is None and self.logger is None)


given = Given()


@dataclass(slots=True)
class Providers:
    """Providers in use; None for a signal that isn't exported."""

    meter: Any = None
    tracer: Any = None
    logger: Any = None
    own: list[Any] = field(default_factory=list)
    """Providers made here, to be ended here."""
    points: Points | None = None
    """Takes the histograms, if the meter provider was made here."""
    exporters: list[Any] = field(default_factory=list)
    gates: list[counting.Gate] = field(default_factory=list)
    sends: list[str] = field(default_factory=list)
    """The signals that these exporters send."""

    def silence(self) -> None:
        """In a forked child, where they belong to the parent: what they send from now on goes nowhere."""
        for each in self.exporters:
            each.gone = True

    def give_up(self) -> None:
        """Counts what waits as lost."""
        self.silence()
        for each in self.gates:
            each.give_up()

    def reachable(self) -> bool:
        """Whether something listens where those made here send to; True if there is none, or that is unknown."""
        asked = {wanted.endpoint(signal) for signal in self.sends}
        return not asked or any(each is None or _listens(*each) for each in asked)

    def end(self) -> None:
        """Delivers what waits, and ends the providers that were made here."""
        for provider in self.own:
            with contextlib.suppress(Exception):
                provider.shutdown()
        theirs = [each for each in (self.meter, self.tracer, self.logger) if each is not None and each not in self.own]
        for provider in theirs:
            if hasattr(provider, "force_flush"):
                with contextlib.suppress(Exception):
                    provider.force_flush(FLUSH_MILLISECONDS)


def find(store: Store) -> Providers:
    """Returns the providers by signal; raises `MissingExtraError` if a package of OpenTelemetry is missing."""
    try:
        from opentelemetry import _logs, metrics, trace
        from opentelemetry.sdk import _logs as sdk_logs
        from opentelemetry.sdk import metrics as sdk_metrics
        from opentelemetry.sdk import trace as sdk_trace
    except ImportError as error:
        raise MissingExtraError("otlp", "opentelemetry-sdk", "otel") from error
    found = Providers()
    found.meter = _first(given.meter, metrics.get_meter_provider(), sdk_metrics.MeterProvider)
    found.tracer = _first(given.tracer, trace.get_tracer_provider(), sdk_trace.TracerProvider)
    found.logger = _first(given.logger, _logs.get_logger_provider(), sdk_logs.LoggerProvider)
    if given.any:
        return found
    make = _Maker(store, found)
    if found.meter is None and make.asked("metrics"):
        found.meter = make.meter()
    if found.tracer is None and make.asked("traces"):
        found.tracer = make.tracer()
    if found.logger is None and make.asked("logs"):
        found.logger = make.logger()
    return found


def _first(handed_in: Any, of_program: Any, kind: type) -> Any:
    """The provider that was handed in, or the global one if the program has set one up."""
    if handed_in is not None:
        return handed_in
    return of_program if isinstance(of_program, kind) else None


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=CONNECT_SECONDS):
            return True
    except OSError:
        return False


class _Maker:
    def __init__(self, store: Store, found: Providers) -> None:
        self._store = store
        self._found = found
        self._resource = _resource(store)

    def asked(self, signal: str) -> bool:
        """Returns whether the signal goes out by OTLP: unless `OTEL_<SIGNAL>_EXPORTER` names something else."""
        names = wanted.exporters(signal)
        return not names or "otlp" in names

    def meter(self) -> Any:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

        points = self._found.points = Points(NAME)
        reader = PeriodicExportingMetricReader(self._exporter("metrics", complete=points.added_to))
        return self._made(MeterProvider(metric_readers=[reader], resource=self._resource, shutdown_on_exit=False))

    def tracer(self) -> Any:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        gate = self._gate("traces", "OTEL_BSP_MAX_QUEUE_SIZE")

        class Admitting(BatchSpanProcessor):
            def on_end(self, span: Any) -> None:
                if span.context.trace_flags.sampled and gate.enter():
                    super().on_end(span)

        provider = TracerProvider(resource=self._resource, shutdown_on_exit=False)
        provider.add_span_processor(Admitting(self._exporter("traces", gate), gate.most))
        return self._made(provider)

    def logger(self) -> Any:
        from opentelemetry.sdk._logs import LoggerProvider
        from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

        gate = self._gate("logs", "OTEL_BLRP_MAX_QUEUE_SIZE")

        class Admitting(BatchLogRecordProcessor):
            def on_emit(self, log_record: Any) -> None:
                if gate.enter():
                    super().on_emit(log_record)

        provider = LoggerProvider(resource=self._resource, shutdown_on_exit=False)
        provider.add_log_record_processor(Admitting(self._exporter("logs", gate), max_queue_size=gate.most))
        return self._made(provider)

    def _gate(self, signal: str, variable: str) -> counting.Gate:
        gate = counting.Gate(counting.room(variable), self._lost(signal))
        self._found.gates.append(gate)
        return gate

    def _lost(self, signal: str) -> Callable[[int], None]:
        return lambda count: self._store.drop(_REASONS[signal], count)

    def _exporter(
        self, signal: str, gate: counting.Gate | None = None, complete: Callable[[Any], Any] | None = None
    ) -> Any:
        made = counting.exporter(signal, wanted.protocol(signal), self._lost(signal), gate, complete)
        self._found.exporters.append(made)
        self._found.sends.append(signal)
        return made

    def _made(self, provider: Any) -> Any:
        self._found.own.append(provider)
        return provider


def _resource(store: Store) -> Any:
    """The process, by the semantic conventions; `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME` go before it."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    attributes: dict[str, str | int] = {
        "service.name": store.program or "jax",
        "service.instance.id": f"{platform.node()}:{os.getpid()}",
        "host.name": platform.node(),
        "host.arch": platform.machine(),
        "os.type": platform.system().lower(),
        "process.pid": os.getpid(),
        "process.runtime.name": platform.python_implementation().lower(),
        "process.runtime.version": platform.python_version(),
        "telemetry.distro.name": NAME,
        "telemetry.distro.version": __version__,
    }
    named = OTELResourceDetector().detect().attributes
    return Resource.create({name: value for name, value in attributes.items() if name not in named})
