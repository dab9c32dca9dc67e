"""The process: versions of what runs here, its place in the job, what this JAX lets us see."""

from __future__ import annotations

import importlib.metadata
import platform
import socket
import sys
import time

from jaxobs import internals
from jaxobs.facts import Manifest
from jaxobs.guard import guarded
from jaxobs.store import Store
from jaxobs.version import __version__


class Process:
    """The source: looks once at the start, and again until the backends are awake."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._told = False
        self._settled = False

    def start(self) -> None:
        """Records the manifest."""
        self._told = True
        found = versions()
        self._store.describe(versions=found, capabilities=internals.probe())
        count = internals.process_index_and_count()[1]
        self._store.record(
            Manifest(
                time=time.time(),
                versions=found,
                program=self._store.program,
                process_count=count,
                hostname=socket.gethostname(),
            )
        )

    def stop(self) -> None:
        """Nothing to undo."""

    def after_fork(self) -> None:
        """The child describes itself when it first uses JAX."""
        self._told = self._settled = False

    def sample(self) -> None:
        """Adds what only an awake backend tells: the runtime's version."""
        if not self._told:
            self.start()
        if not self._settled and internals.backends_awake():
            self._store.describe(versions=versions())
            self._settled = True


def versions() -> dict[str, str]:
    """Versions of jaxobs, Python, JAX and jaxlib, and of the plugin and runtime where there are any."""
    found = {"jaxobs": __version__, "python": platform.python_version()}
    for name in ("jax", "jaxlib"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            found[name] = str(version)
    plugins = set()
    with guarded("versions"):  # a package may be installed badly
        for each in importlib.metadata.entry_points(group="jax_plugins"):
            if each.dist is not None:
                plugins.add(f"{each.dist.name} {each.dist.version}")
    if plugins:
        found["plugin"] = ", ".join(sorted(plugins))
    for client in internals.clients():
        if client.platform != "cpu":
            found["runtime"] = " ".join(str(client.platform_version).split())[:120]
    return found


def source(store: Store) -> Process:
    """What the folder's discovery asks every source for."""
    return Process(store)
