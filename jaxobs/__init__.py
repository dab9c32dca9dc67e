"""jaxobs: see what JAX does between your Python and the chip.

    import jaxobs

    jaxobs.start()  # http://127.0.0.1:9464/

Importing starts nothing, wakes no backend, and imports JAX only when something here needs it. Each name is imported
when it is first used, for every pytest of an environment loads the plugin in this package. (PYTEST_DONT_REWRITE: nor
shall pytest warn where jaxobs was there before it, as under `jaxobs run -m pytest`.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxobs.base.errors import JaxobsError, MissingExtraError, ParameterError, PortTakenError, SettingError
from jaxobs.base.version import __version__

if TYPE_CHECKING:
    from jaxobs.actions.capturing import Capture, capture
    from jaxobs.compile_cache.warming import Signature, warmup
    from jaxobs.exporters.forms.exposition import SnapshotCollector
    from jaxobs.facts.snapshot import Snapshot
    from jaxobs.instruments.asgi_middleware import asgi
    from jaxobs.instruments.engines import engine
    from jaxobs.instruments.inputs import data
    from jaxobs.instruments.nonfinite import watch
    from jaxobs.instruments.requests import request
    from jaxobs.instruments.stepping import step, steps
    from jaxobs.instruments.timed import phase
    from jaxobs.instruments.wrapper import instrument, jit
    from jaxobs.instruments.wsgi_middleware import wsgi
    from jaxobs.session.lifecycle import install, serve, snapshot, start, uninstall
    from jaxobs.web.server import Handle

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
    "engine",
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
    from jaxobs.exporters.forms.exposition import SnapshotCollector
    from jaxobs.state.store import current

    return SnapshotCollector(current())


_HOMES = {
    **dict.fromkeys(("Capture", "capture"), "actions.capturing"),
    "Handle": "web.server",
    "Snapshot": "facts.snapshot",
    **dict.fromkeys(("install", "serve", "snapshot", "start", "uninstall"), "session.lifecycle"),
    **dict.fromkeys(("instrument", "jit"), "instruments.wrapper"),
    **dict.fromkeys(("step", "steps"), "instruments.stepping"),
    "data": "instruments.inputs",
    "watch": "instruments.nonfinite",
    "phase": "instruments.timed",
    "request": "instruments.requests",
    "engine": "instruments.engines",
    "asgi": "instruments.asgi_middleware",
    "wsgi": "instruments.wsgi_middleware",
    **dict.fromkeys(("Signature", "warmup"), "compile_cache.warming"),
    # For `%load_ext jaxobs`, which looks for these names; not for anybody else.
    **dict.fromkeys(("load_ipython_extension", "unload_ipython_extension"), "session.notebook"),
}


def __getattr__(name: str) -> Any:
    import importlib

    if name == "testing":  # `import jaxobs` is enough for `jaxobs.testing.max_compiles`
        return importlib.import_module("jaxobs.testing")
    if name not in _HOMES:
        raise AttributeError(f"module 'jaxobs' has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"jaxobs.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
