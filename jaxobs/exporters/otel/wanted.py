"""The wish to export metrics and traces to OpenTelemetry: the setting, or OpenTelemetry's own variables."""

import importlib.util
import os
import urllib.parse
from collections.abc import Mapping

SIGNALS = ("metrics", "traces", "logs")
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", *(f"OTEL_EXPORTER_OTLP_{each.upper()}_ENDPOINT" for each in SIGNALS))

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "GRPC_PROXY")


def wanted(setting: bool | None, environment: Mapping[str, str] | None = None) -> bool:
    """Returns whether to export: as the setting says; if it is `None`, whether a variable `OTEL_*` asks for OTLP.

    `OTEL_SDK_DISABLED` turns it off in either case. Without the packages, variables ask for nothing.
    """
    environment = os.environ if environment is None else environment
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or setting is False:
        return False
    return setting is True or (_asked_for(environment) and _installed())


def _installed() -> bool:
    try:
        return importlib.util.find_spec("opentelemetry.sdk") is not None
    except ImportError:
        return False


def _asked_for(environment: Mapping[str, str]) -> bool:
    exported = [exporters(each, environment) for each in SIGNALS]
    return any(environment.get(name, "").strip() for name in _ENDPOINTS) or any("otlp" in each for each in exported)


def exporters(signal: str, environment: Mapping[str, str] | None = None) -> list[str]:
    """The names in `OTEL_<SIGNAL>_EXPORTER`: `otlp`, `console`, `none`; nothing if it isn't set."""
    environment = os.environ if environment is None else environment
    names = environment.get(f"OTEL_{signal.upper()}_EXPORTER", "").split(",")
    return [name.strip().lower() for name in names if name.strip()]


def protocol(signal: str, environment: Mapping[str, str] | None = None) -> str:
    """`grpc` or `http/protobuf`, which is the default; what is neither counts as the default."""
    environment = os.environ if environment is None else environment
    for name in (f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if environment.get(name, "").strip():
            return "grpc" if environment[name].strip().lower() == "grpc" else "http/protobuf"
    return "http/protobuf"


def endpoint(signal: str, environment: Mapping[str, str] | None = None) -> tuple[str, int] | None:
    """Host and port that a signal is sent to; None if a proxy may be between, or the address says neither."""
    environment = os.environ if environment is None else environment
    if any(environment.get(name) for proxy in _PROXIES for name in (proxy, proxy.lower())):
        return None
    default = "http://localhost:4317" if protocol(signal, environment) == "grpc" else "http://localhost:4318"
    address = environment.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT", "").strip()
    address = address or environment.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip() or default
    try:
        parts = urllib.parse.urlsplit(address if "//" in address else f"//{address}")
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return None
    return (parts.hostname, port) if parts.hostname else None
