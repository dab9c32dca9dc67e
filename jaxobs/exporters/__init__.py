"""Destinations of the facts: Prometheus, OpenTelemetry, event log, files, trackers; one file for each.

An exporter's module has `routes(store)`, the paths of the endpoint that it answers; or `exporter(store, settings)`,
which makes an object with `every`, `sample`, `close` and `after_fork`, or None where the settings do not want it; or
both. What exporters share lies in `forms`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from jaxobs.base import discovery

if TYPE_CHECKING:
    from jaxobs.base.config import Settings
    from jaxobs.exporters.forms.http_types import Route
    from jaxobs.state.store import Store


class Exporter(Protocol):
    """Writes to one destination: every `every` seconds, or never where that is infinite."""

    @property
    def every(self) -> float: ...
    def sample(self) -> None: ...
    def close(self) -> None: ...
    def after_fork(self) -> None: ...


class ExporterModule(discovery.Module, Protocol):
    """Makes one exporter, or None if the settings do not want it."""

    def exporter(self, store: Store, settings: Settings, /) -> Exporter | None: ...


class RoutesModule(discovery.Module, Protocol):
    """Answers paths of the endpoint."""

    def routes(self, store: Store, /) -> Mapping[str, Route]: ...
