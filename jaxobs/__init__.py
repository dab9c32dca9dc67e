"""jaxobs: see what JAX does between your Python and the chip.

    import jaxobs

    jaxobs.start()  # http://127.0.0.1:9464/

Importing starts nothing, wakes no backend, and imports JAX only when something here needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxobs.errors import JaxobsError, MissingExtraError, PortTakenError, SettingError
from jaxobs.facts import Snapshot
from jaxobs.session import install, serve, snapshot, start, uninstall
from jaxobs.version import __version__
from jaxobs.wrapper import instrument, jit

if TYPE_CHECKING:
    from jaxobs.exposition import SnapshotCollector
    from jaxobs.server import Handle

__all__ = [
    "Handle",
    "JaxobsError",
    "MissingExtraError",
    "PortTakenError",
    "SettingError",
    "Snapshot",
    "__version__",
    "collector",
    "install",
    "instrument",
    "jit",
    "serve",
    "snapshot",
    "start",
    "uninstall",
]


def collector() -> SnapshotCollector:
    """A Prometheus collector over this process's state, for a registry of your own.

    registry = prometheus_client.CollectorRegistry()
    registry.register(jaxobs.collector())
    """
    from jaxobs.exposition import SnapshotCollector
    from jaxobs.store import current

    return SnapshotCollector(current())


def __getattr__(name: str) -> Any:
    if name == "Handle":
        from jaxobs.server import Handle

        return Handle
    raise AttributeError(f"module 'jaxobs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
