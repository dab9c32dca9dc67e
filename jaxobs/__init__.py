"""jaxobs: see what JAX does between your Python and the chip.

    import jaxobs

    jaxobs.start()  # http://127.0.0.1:9464/

Importing starts nothing, wakes no backend, and imports JAX only when something here needs it. Each name is imported
when it is first used, for every pytest of an environment loads the plugin in this package. (PYTEST_DONT_REWRITE: nor
shall pytest warn where jaxobs was there before it, as under `jaxobs run -m pytest`.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxobs.errors import JaxobsError, MissingExtraError, ParameterError, PortTakenError, SettingError
from jaxobs.version import __version__

if TYPE_CHECKING:
    from jaxobs.asgi_middleware import asgi
    from jaxobs.capturing import Capture, capture
    from jaxobs.exposition import SnapshotCollector
    from jaxobs.facts import Snapshot
    from jaxobs.inputs import data
    from jaxobs.nonfinite import watch
    from jaxobs.requests import request
    from jaxobs.server import Handle
    from jaxobs.session import install, serve, snapshot, start, uninstall
    from jaxobs.stepping import step, steps
    from jaxobs.timed import phase
    from jaxobs.warming import Signature, warmup
    from jaxobs.wrapper import instrument, jit
    from jaxobs.wsgi_middleware import wsgi

__all__ = [
    "Capture",
    "Handle",
    "JaxobsError",
    "MissingExtraError",
    "ParameterError",
    "PortTakenError",
    "SettingError",
    "Signature",
    "Snapshot",
    "__version__",
    "asgi",
    "capture",
    "collector",
    "data",
    "install",
    "instrument",
    "jit",
    "phase",
    "request",
    "serve",
    "snapshot",
    "start",
    "step",
    "steps",
    "uninstall",
    "warmup",
    "watch",
    "wsgi",
]


def collector() -> SnapshotCollector:
    """A Prometheus collector over this process's state, for a registry of your own.

    registry = prometheus_client.CollectorRegistry()
    registry.register(jaxobs.collector())
    """
    from jaxobs.exposition import SnapshotCollector
    from jaxobs.store import current

    return SnapshotCollector(current())


_HOMES = {
    **dict.fromkeys(("Capture", "capture"), "capturing"),
    "Handle": "server",
    "Snapshot": "facts",
    **dict.fromkeys(("install", "serve", "snapshot", "start", "uninstall"), "session"),
    **dict.fromkeys(("instrument", "jit"), "wrapper"),
    **dict.fromkeys(("step", "steps"), "stepping"),
    "data": "inputs",
    "watch": "nonfinite",
    "phase": "timed",
    "request": "requests",
    "asgi": "asgi_middleware",
    "wsgi": "wsgi_middleware",
    **dict.fromkeys(("Signature", "warmup"), "warming"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'jaxobs' has no attribute {name!r}")
    import importlib

    found = globals()[name] = getattr(importlib.import_module(f"jaxobs.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
