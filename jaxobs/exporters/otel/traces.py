"""Spans: one for each compilation, with its phases, inside the span that was active where the program called.

A compilation is recorded on the thread that compiled, so that OpenTelemetry's current context is the program's. Steps,
cold requests and checkpoints become spans when they are over; what compiled in them is linked. Findings become events,
log records with a name.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from jaxobs.base import threads
from jaxobs.base.version import __version__
from jaxobs.exporters.otel.providers import NAME
from jaxobs.facts.compilations import PHASES, Compilation
from jaxobs.facts.errors import OutOfMemory
from jaxobs.facts.events import Event
from jaxobs.facts.findings import Finding
from jaxobs.facts.steps import Step
from jaxobs.metrics.buckets import REQUEST_BOUNDS, STEP_BOUNDS
from jaxobs.state import exemplars
from jaxobs.state.checkpoints import Checkpoints
from jaxobs.state.routes import Ended, Routes
from jaxobs.state.store import Store

MOST_CHANGES = 8
MOST_TEXT = 1000
MOST_LINKS = 32
MOST_KNOWN = 1024
"""Compilations that what contains them can be linked to."""
_SEVERITIES = {"info": "INFO", "warning": "WARN", "critical": "ERROR"}


class Traces:
    """The spans of one tracer provider."""

    def __init__(self, store: Store, provider: Any) -> None:
        self._store = store
        self._tracer = provider.get_tracer(NAME, __version__)
        # Reentrant: a signal handler of the program may compile while this thread is in here.
        self._lock = threads.RLock()
        self._known: OrderedDict[int, tuple[float, Any, Any]] = OrderedDict()
        """Compilations by their number: when each ended, its span's context, and the context of the span around it."""
        self._requests_told = time.perf_counter()
        self._checkpoints_told = time.time()

    def see(self, event: Event) -> None:
        """Reports an event, on the thread that records it."""
        if isinstance(event, Compilation):
            self._compilation(event)
        elif isinstance(event, Step):
            self._step(event)
        elif isinstance(event, OutOfMemory):
            self._out_of_memory(event)

    def sample(self) -> None:
        """Reports the cold requests and checkpoints that have ended since."""
        for route, request in self._store.part(Routes).cold_since(self._requests_told):
            self._requests_told = request.ended
            self._request(route, request)
        for save in self._store.part(Checkpoints).since(self._checkpoints_told):
            self._checkpoints_told = save.ended
            attributes = {"jax.checkpoint.operation": save.operation}
            self._ended(f"jax checkpoint {save.operation}", save.ended - save.seconds, save.ended, attributes)

    # ---------------------------------------------------------------------------------------- what happened

    def _compilation(self, event: Compilation) -> None:
        from opentelemetry import trace

        around = trace.get_current_span().get_span_context()
        seconds = sum(event.phases.values())
        span = self._tracer.start_span(
            f"jax compile {event.function}", start_time=_nanoseconds(event.time - seconds),
            attributes=_of_compilation(event),
        )  # fmt: skip
        if span.is_recording():
            # One after the other, as JAX runs them: each event has their lengths.
            began, inside = event.time - seconds, trace.set_span_in_context(span)
            for phase in PHASES:
                if phase in event.phases:
                    child = self._tracer.start_span(f"jax {phase}", context=inside, start_time=_nanoseconds(began))
                    began += event.phases[phase]
                    child.end(_nanoseconds(began))
            exemplars.compiled(self._store, event, span.get_span_context())
            known = event.time, span.get_span_context(), around if around.is_valid else None
            with self._lock:
                self._known[event.sequence] = known
                while len(self._known) > MOST_KNOWN:
                    self._known.popitem(last=False)
        span.end(_nanoseconds(event.time))

    def _step(self, event: Step) -> None:
        attributes: dict[str, Any] = {
            "jax.loop": event.loop,
            "jax.step.count": event.count,
            "jax.step.last": event.last,
            "jax.step.seconds": event.seconds,
            "jax.step.median_seconds": event.median_seconds,
            "jax.step.slow": event.slow,
            "jax.compilations": event.compilations,
        }
        if event.items is not None:
            attributes["jax.step.items"] = event.items
        if event.reason is not None:
            attributes["jax.step.reason"] = _short(event.reason)
        began = event.time - event.seconds
        name = f"jax slow step {event.loop}" if event.slow else f"jax steps {event.loop}"
        context = self._ended(name, began, event.time, attributes, self._between(began, event.time))
        if event.slow:
            exemplars.observed(
                self._store, "jax_step_seconds", (event.loop,), STEP_BOUNDS, event.seconds, event.time, context
            )  # fmt: skip

    def _request(self, route: str, request: Ended) -> None:
        ended = time.time() - (time.perf_counter() - request.ended)
        count, compiled = request.compiled or (0, ())
        attributes = {
            "http.route": route, "jax.request.outcome": request.outcome, "jax.request.cold": True,
            "jax.compilations": count,
            "jax.request.compile_seconds": sum(sum(each.phases.values()) for each in compiled),
        }  # fmt: skip
        with self._lock:
            inside = [self._known[each.sequence] for each in compiled if each.sequence in self._known]
        # What compiled has the program's own span around it: that is the request's, or something inside it.
        around = next((parent for _, _, parent in inside if parent is not None), None)
        context = self._ended(
            f"jax request {route}", ended - request.seconds, ended, attributes, [each for _, each, _ in inside], around,
            failed=request.outcome if request.outcome == "error" else None,
        )  # fmt: skip
        labels = route, request.cold
        exemplars.observed(
            self._store, "jax_request_seconds", labels, REQUEST_BOUNDS, request.seconds, ended, context
        )  # fmt: skip

    def _out_of_memory(self, event: OutOfMemory) -> None:
        attributes = {
            "jax.function": event.function, "jax.out_of_memory.stage": event.stage, "error.type": event.error,
            **_site(event.call_site),
        }  # fmt: skip
        for name, value in (("jax.device", event.device), ("jax.out_of_memory.report", event.report)):
            if value is not None:
                attributes[name] = value
        if event.causes:
            attributes["jax.out_of_memory.cause"] = event.causes[0].cause
            attributes["jax.out_of_memory.advice"] = _short(event.causes[0].advice)
        self._ended(
            f"jax out of memory {event.function}", event.time - (event.seconds or 0.0), event.time, attributes,
            failed=_short(event.message),
        )  # fmt: skip

    # ----------------------------------------------------------------------------------------------- helpers

    def _between(self, began: float, ended: float) -> list[Any]:
        with self._lock:
            return [context for moment, context, _ in self._known.values() if began <= moment <= ended]

    def _ended(
        self, name: str, began: float, ended: float, attributes: dict[str, Any], links: Iterable[Any] = (),
        around: Any = None, failed: str | None = None,
    ) -> Any:  # fmt: skip
        """A span of what is over, inside the context `around` or what is active where this is called; its context."""
        from opentelemetry import trace

        inside = None if around is None else trace.set_span_in_context(trace.NonRecordingSpan(around))
        span = self._tracer.start_span(
            name, context=inside, start_time=_nanoseconds(began), attributes=attributes,
            links=[trace.Link(each) for each in [*links][-MOST_LINKS:]],
        )  # fmt: skip
        if failed is not None:
            span.set_status(trace.Status(trace.StatusCode.ERROR, failed))
        span.end(_nanoseconds(ended))
        return span.get_span_context()


def _of_compilation(event: Compilation) -> dict[str, Any]:
    found = {
        "jax.function": event.function,
        "jax.compile.cause": event.cause,
        "jax.compile.reason": _short(event.reason),
        "jax.compile.cache": event.cache,
        "jax.compile.eager": event.eager,
        "jax.event.sequence": event.sequence,
        **_site(event.call_site),
    }
    if event.changes:
        found["jax.compile.changes"] = [
            _short(f"{each.path or each.what}: {each.before} -> {each.after}") for each in event.changes[:MOST_CHANGES]
        ]
    for name, value in (
        ("jax.compile.fingerprint", event.fingerprint),
        ("jax.compile.uncached_because", event.uncached_because),
        ("jax.compile.library_site", event.library_site),
    ):
        if value is not None:
            found[name] = value
    return found


def _site(call_site: str | None) -> dict[str, Any]:
    """A line of the program by the semantic conventions."""
    path, _, line = (call_site or "").rpartition(":")
    return {"code.file.path": path, "code.line.number": int(line)} if path and line.isdecimal() else {}


def _short(text: str) -> str:
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + "…"


def _nanoseconds(seconds: float) -> int:
    return max(0, round(seconds * 1e9)) if math.isfinite(seconds) else 0


class Findings:
    """The events of one logger provider."""

    def __init__(self, provider: Any) -> None:
        self._logger = provider.get_logger(NAME, __version__)

    def see(self, finding: Finding) -> None:
        """Reports a finding, on the thread that records it."""
        from opentelemetry._logs import LogRecord, SeverityNumber

        severity = _SEVERITIES.get(finding.severity, "WARN")
        attributes: dict[str, Any] = {
            "jax.finding.id": finding.id, "jax.finding.type": finding.finding, "jax.function": finding.function,
            "jax.finding.advice": finding.advice, "jax.finding.count": finding.count,
            "jax.finding.seconds": finding.seconds, "jax.finding.active": finding.ended is None,
        }  # fmt: skip
        for name, value in (("subject", finding.subject), ("where", finding.where), ("bytes", finding.bytes)):
            if value:
                attributes[f"jax.finding.{name}"] = value
        self._logger.emit(
            LogRecord(
                timestamp=round(finding.time * 1e9), severity_text=severity, severity_number=SeverityNumber[severity],
                body=finding.summary, attributes=attributes, event_name=f"jax.finding.{finding.finding}",
            )
        )  # fmt: skip
