"""The entry point for `opentelemetry-instrument`: observes an unchanged program, through OpenTelemetry's providers.

OpenTelemetry loads this at the interpreter's start, before the program: JAX is not imported yet, nor is it here.
"""

from collections.abc import Collection
from typing import Any

from jaxobs.base.errors import MissingExtraError
from jaxobs.base.guard import guarded, logger

try:
    from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]
except ImportError as error:
    raise MissingExtraError("opentelemetry-instrument", "opentelemetry-instrumentation", "otel") from error


class JaxInstrumentor(BaseInstrumentor):  # type: ignore[misc]
    """Observes JAX. `instrument()` without arguments does what `opentelemetry-instrument` does.

    Args of `instrument`:
      meter_provider, tracer_provider, logger_provider: OpenTelemetry's, in place of the global ones.
      others: settings, as `jaxobs.install` takes them.
    """

    def instrumentation_dependencies(self) -> Collection[str]:
        """Returns the packages that are instrumented."""
        return ("jax >= 0.6",)

    def _instrument(self, **settings: Any) -> None:
        # An exception here would stop the instrumentation of everything else.
        try:
            from jaxobs.session import lifecycle

            lifecycle.install(**{"otlp": True, **settings})
        except Exception as error:
            with guarded("opentelemetry.log"):
                logger.warning("jaxobs does not observe this program: %s", error)

    def _uninstrument(self, **_: Any) -> None:
        with guarded("opentelemetry"):
            from jaxobs.session import lifecycle

            lifecycle.uninstall()
            lifecycle.forget_providers()
