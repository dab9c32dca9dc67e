"""Findings as OpenTelemetry's events: log records with a name."""

from __future__ import annotations

from typing import Any

from jaxobs.base.version import __version__
from jaxobs.exporters.otel.providers import NAME
from jaxobs.facts.findings import Finding

_SEVERITIES = {"info": "INFO", "warning": "WARN", "critical": "ERROR"}


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
