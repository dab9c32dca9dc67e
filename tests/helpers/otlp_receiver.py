"""A receiver of OTLP over HTTP, on OpenTelemetry's own message types: keeps what programs send."""

from __future__ import annotations

import contextlib
import gzip
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from helpers.answering import Request, serving

KINDS = {
    "/v1/metrics": ExportMetricsServiceRequest,
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
}


class Receiver:
    """`url` is the endpoint; `status` what it answers; `block`, while it is set, holds every answer back."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, Any]] = []
        self.status = 200
        self.block = threading.Event()
        self.go_on = threading.Event()
        self._open = contextlib.ExitStack()
        self.url = self._open.enter_context(serving(self._answer))

    def _answer(self, request: Request) -> int | bytes:
        zipped = request.headers.get("Content-Encoding") == "gzip"
        if self.block.is_set():
            self.go_on.wait(120)
        if self.status != 200:
            return self.status
        body = gzip.decompress(request.body) if zipped else request.body
        self.requests.append((str(request), KINDS[request].FromString(body)))
        return b""

    def close(self) -> None:
        """Stops listening."""
        self.go_on.set()
        self._open.close()

    def spans(self) -> list[Any]:
        """All spans so far."""
        return self._sent("/v1/traces", "resource_spans", "scope_spans", "spans")

    def records(self) -> list[Any]:
        """All log records so far."""
        return self._sent("/v1/logs", "resource_logs", "scope_logs", "log_records")

    def _sent(self, path: str, *levels: str) -> list[Any]:
        found = [request for sent, request in self.requests if sent == path]
        for level in levels:
            found = [each for outer in found for each in getattr(outer, level)]
        return found

    def metrics(self) -> dict[str, Any]:
        """The metrics of the latest export, by name."""
        latest = [request for path, request in self.requests if path == "/v1/metrics"][-1:]
        return {metric.name: metric for request in latest for metric in _metrics(request)}

    def resource(self) -> dict[str, Any]:
        """The attributes of the resource of the latest metrics."""
        latest = [request for path, request in self.requests if path == "/v1/metrics"][-1]
        return attributes(latest.resource_metrics[0].resource)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that answers."""
    found = Receiver()
    yield found
    found.close()


def _metrics(request: Any) -> Iterator[Any]:
    for resource in request.resource_metrics:
        for scope in resource.scope_metrics:
            yield from scope.metrics


def attributes(of: Any) -> dict[str, Any]:
    """Attributes of a span, a point, a record or a resource, as Python's values."""
    return {each.key: _value(each.value) for each in of.attributes}


def _value(value: Any) -> Any:
    if (kind := value.WhichOneof("value")) == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind)
