"""Names of OpenTelemetry's semantic conventions: accelerators as hardware, and generated text (`gen_ai`)."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jaxobs.facts.accelerators import AcceleratorState
from jaxobs.facts.functions import Histogram
from jaxobs.facts.requests import RouteState
from jaxobs.facts.snapshot import Snapshot

Attributes = Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Instrument:
    """An instrument that the conventions name."""

    name: str
    unit: str
    kind: str
    """`counter`, `updowncounter`, `gauge` or `histogram`."""
    help: str


_UTILIZATION = Instrument("hw.gpu.utilization", "1", "gauge", "Share of time in which any program ran on the device.")
_MEMORY_USED = Instrument("hw.gpu.memory.usage", "By", "updowncounter", "Memory of the device in use by all processes.")
_MEMORY_LIMIT = Instrument("hw.gpu.memory.limit", "By", "updowncounter", "Total memory of the device.")
_MEMORY_SHARE = Instrument("hw.gpu.memory.utilization", "1", "gauge", "Share of the device's memory in use.")
_POWER = Instrument("hw.power", "W", "gauge", "Power draw of the device.")
_ENERGY = Instrument("hw.energy", "J", "counter", "Energy used by the device since its driver was loaded.")
_TEMPERATURE = Instrument("hw.temperature", "Cel", "gauge", "Temperature of the device.")
_ERRORS = Instrument("hw.errors", "{error}", "counter", "Errors of the device, by type.")

INSTRUMENTS = (
    _UTILIZATION, _MEMORY_USED, _MEMORY_LIMIT, _MEMORY_SHARE, _POWER, _ENERGY, _TEMPERATURE, _ERRORS,
)  # fmt: skip

_FIRST_TOKEN = Instrument(
    "gen_ai.server.time_to_first_token", "s", "histogram", "Time to the first output token of requests that succeed."
)
_OUTPUT_TOKEN = Instrument(
    "gen_ai.server.time_per_output_token", "s", "histogram", "Mean time for each output token after the first."
)
_DURATION = Instrument("gen_ai.server.request.duration", "s", "histogram", "Time of requests to routes that generate.")
_TOKENS = Instrument("gen_ai.client.token.usage", "{token}", "histogram", "Tokens of a request, by type.")

_HTTP = Instrument("http.server.request.duration", "s", "histogram", "Time of HTTP requests.")

HISTOGRAMS = (_FIRST_TOKEN, _OUTPUT_TOKEN, _DURATION, _TOKENS, _HTTP)

_COUNTED_ELSEWHERE = ("opentelemetry.instrumentation.asgi", "opentelemetry.instrumentation.wsgi")
"""Instrumentations of OpenTelemetry that report `http.server.request.duration` themselves."""

PROVIDER = "jax"
_OPERATIONS = (("chat", "chat"), ("embed", "embeddings"), ("complet", "text_completion"))
"""Operations of the conventions by what a route's name has in it."""


def samples(snapshot: Snapshot) -> Iterator[tuple[Instrument, Mapping[str, str], float]]:
    """The observed values of a snapshot."""
    for device in snapshot.accelerators:
        attributes = _hardware(device)
        used, total = device.memory_used_bytes, device.memory_total_bytes
        found = (
            (_UTILIZATION, device.utilization),
            (_MEMORY_USED, used),
            (_MEMORY_LIMIT, total),
            (_MEMORY_SHARE, used / total if used is not None and total else None),
            (_POWER, device.power_watts),
            (_ENERGY, device.energy_joules),
            (_TEMPERATURE, device.temperature_celsius),
        )
        for instrument, value in found:
            if value is not None:
                yield instrument, attributes, value
        for error, counters in device.ecc_errors.items():
            if "volatile" in counters:
                yield _ERRORS, {**attributes, "error.type": error}, counters["volatile"]


def _hardware(device: AcceleratorState) -> dict[str, str]:
    attributes = {"hw.id": device.uuid or device.device, "hw.name": device.device, "hw.type": "gpu"}
    if not device.uuid:
        attributes["hw.type"] = "tpu"
    for name, value in (("hw.model", device.model), ("hw.driver_version", device.driver_version)):
        if value:
            attributes[name] = value
    return attributes


def histograms(snapshot: Snapshot) -> Iterator[tuple[Instrument, Attributes, Histogram]]:
    """The histograms of HTTP requests, and of those that generate text: that report tokens, or their first one."""
    for route in snapshot.routes:
        for alike in () if any(name in sys.modules for name in _COUNTED_ELSEWHERE) else route.http:
            known: dict[str, str | int] = {
                "http.request.method": alike.method, "url.scheme": alike.scheme, "http.route": route.route,
            }  # fmt: skip
            if alike.status:
                known["http.response.status_code"] = alike.status
            if alike.status == 0 or alike.status >= 500:
                known["error.type"] = str(alike.status or "_OTHER")
            yield _HTTP, known, alike.seconds
        if not (route.output_tokens or route.input_tokens or route.first_token_seconds):
            continue
        attributes: dict[str, str | int] = {
            "gen_ai.operation.name": operation(route.route),
            "gen_ai.provider.name": PROVIDER,
            "http.route": route.route,
        }
        found = (
            (_FIRST_TOKEN, route.first_token_seconds),
            (_OUTPUT_TOKEN, route.output_token_seconds),
            (_DURATION, _together(route)),
        )
        for instrument, value in found:
            if value is not None:
                yield instrument, attributes, value
        for kind, tokens in route.request_tokens.items():
            yield _TOKENS, {**attributes, "gen_ai.token.type": kind}, tokens


def operation(route: str) -> str:
    """`chat`, `text_completion`, `embeddings`, as the route's name says; `generate_content` if it doesn't."""
    return next((name for part, name in _OPERATIONS if part in route.lower()), "generate_content")


def _together(route: RouteState) -> Histogram | None:
    """Cold and warm requests in one."""
    parts = list(route.seconds.values())
    if not parts:
        return None
    counts = tuple(sum(column) for column in zip(*(each.counts for each in parts), strict=True))
    return Histogram(parts[0].bounds, counts, sum(each.sum for each in parts))
