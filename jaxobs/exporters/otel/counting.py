"""OTLP exporters that count what they could not deliver, of either protocol."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any

from jaxobs.base import threads
from jaxobs.base.errors import MissingExtraError

_NAMES = {
    "metrics": ("metric_exporter", "OTLPMetricExporter"),
    "traces": ("trace_exporter", "OTLPSpanExporter"),
    "logs": ("_log_exporter", "OTLPLogExporter"),
}


class Gate:
    """Lets so many spans, or records, wait at a time: OpenTelemetry's queue would drop others without telling."""

    def __init__(self, most: int, lost: Callable[[int], None]) -> None:
        self.most = most
        self._lost = lost
        self._lock = threads.Lock()
        self._waiting = 0

    def enter(self) -> bool:
        """Counts one more in if there is room, else as lost; returns whether there is."""
        with self._lock:
            if self._waiting < self.most:
                self._waiting += 1
                return True
        self._lost(1)
        return False

    def leave(self, count: int) -> None:
        """Counts so many out."""
        with self._lock:
            self._waiting -= count

    def give_up(self) -> None:
        """Nothing that waits will be delivered."""
        with self._lock:
            waiting, self._waiting = self._waiting, 0
        if waiting > 0:
            self._lost(waiting)


def room(variable: str) -> int:
    """Returns how many spans or records may wait, by OpenTelemetry's variable; 2,048 if it doesn't say."""
    try:
        return max(1, int(os.environ.get(variable, "")))
    except ValueError:
        return 2048


def exporter(
    signal: str,
    protocol: str,
    lost: Callable[[int], None],
    gate: Gate | None = None,
    complete: Callable[[Any], Any] | None = None,
) -> Any:
    """An OTLP exporter as OpenTelemetry's variables describe it, which calls `lost` with what it could not deliver.

    Args:
      gate: what it exports has entered by this gate.
      complete: is given what must be exported, and returns what is exported in its place.

    Raises:
      MissingExtraError: the package for that protocol isn't installed.
    """
    module, name = _NAMES[signal]
    kind = "grpc" if protocol == "grpc" else "http"
    try:
        found = importlib.import_module(f"opentelemetry.exporter.otlp.proto.{kind}.{module}")
    except ImportError as error:
        raise MissingExtraError("otlp", f"opentelemetry-exporter-otlp-proto-{kind}", "otel") from error
    return _counting(getattr(found, name), lost, gate, complete)()


def _counting(base: Any, lost: Callable[[int], None], gate: Gate | None, complete: Callable[[Any], Any] | None) -> Any:
    class Counting(base):  # type: ignore[misc]
        """Counts what is lost; silent once `gone` is set, as in a forked child, which has its own."""

        gone = False

        def export(self, batch: Any, *args: Any, **options: Any) -> Any:
            if self.gone:
                return _success(base)
            if complete is not None:
                batch = complete(batch)
            delivered = False
            try:
                result = super().export(batch, *args, **options)
                delivered = getattr(result, "name", "") == "SUCCESS"
                return result
            finally:
                if not delivered:
                    lost(_size(batch))
                if gate is not None:
                    gate.leave(len(batch))

    return Counting


def _success(base: Any) -> Any:
    module = importlib.import_module(base.__module__)
    for name in ("MetricExportResult", "SpanExportResult", "LogRecordExportResult"):
        if hasattr(module, name):
            return getattr(module, name).SUCCESS
    return None


def _size(batch: Any) -> int:
    """Spans or log records; of metrics, the points."""
    if isinstance(batch, Sequence):
        return len(batch)
    return sum(
        len(metric.data.data_points)
        for resource in batch.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    )
