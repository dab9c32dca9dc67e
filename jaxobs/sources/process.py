"""The process: versions of what runs here, its place in the job, what this JAX lets us see."""

import dataclasses
import importlib.metadata
import platform
import sys
import time
from typing import Any

from jaxobs import internals
from jaxobs.base.guard import guarded
from jaxobs.base.version import __version__
from jaxobs.drivers import torch_xla
from jaxobs.facts.process import Manifest
from jaxobs.sources.support import manifest
from jaxobs.sources.support.source import Source

LOOKS_FOR_A_DRIVER = 3
"""Samples after which the manifest is reported again although the driver has not reported its version."""


class Process(Source):
    """The source: looks once at the start, and again until the backends are initialized."""

    def _begin(self) -> None:
        self._told = False
        self._settled = False
        self._looks = 0
        """Looks since a backend is initialized."""
        self._recorded: Manifest | None = None

    def start(self) -> None:
        """Records the manifest."""
        self._told = "jax" in sys.modules  # else torch_xla is there, and JAX may come
        self._store.describe(versions=versions(), capabilities=internals.probe() if self._told else None)
        self._record()

    def _record(self) -> None:
        """The manifest as far as it is known: before a backend is initialized, without devices."""
        found: dict[str, Any] = {}
        with guarded("manifest"):
            found["flags"], found["config"] = manifest.flags(), internals.options()
        with guarded("manifest.commit"):
            found["commit"] = manifest.commit()
        with guarded("manifest.topology"):
            found |= manifest.topology()
        event = Manifest(
            time=0.0,
            versions=self._store.snapshot_versions(),
            program=self._store.program,
            process_count=internals.process_index_and_count()[1],
            hostname=platform.node(),
            **found,
        )
        if event != self._recorded:
            self._recorded = event
            self._store.record(dataclasses.replace(event, time=time.time()))

    def sample(self) -> None:
        """Adds what only an awake backend says: the runtime's version, devices and topology, the driver's version."""
        if not self._told and "jax" in sys.modules:
            self.start()
        if self._settled or not internals.backends_awake():
            return
        self._looks += 1
        if self._looks == 1:
            self._store.describe(versions=versions())
        driver = next((each.driver_version for each in self._store.snapshot_accelerators()), None)
        if driver is None and internals.default_platform() != "cpu" and self._looks < LOOKS_FOR_A_DRIVER:
            return
        self._store.describe(versions={} if driver is None else {"driver": driver})
        self._settled = True
        self._record()


def versions() -> dict[str, str]:
    """Versions of jaxobs, Python, JAX and jaxlib, and of plugin, its libraries and the runtime where there are any."""
    found = {"jaxobs": __version__, "python": platform.python_version()}
    for name in ("jax", "jaxlib"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            found[name] = str(version)
    found |= torch_xla.versions()
    plugins = set()
    with guarded("versions"):  # a package may be installed badly
        for plugin in importlib.metadata.entry_points(group="jax_plugins"):
            if plugin.dist is not None:
                plugins.add(f"{plugin.dist.name} {plugin.dist.version}")
    if plugins:
        found["plugin"] = ", ".join(sorted(plugins))
    with guarded("versions"):
        found |= manifest.packages(plugins)
    for client in internals.clients():
        if client.platform != "cpu":
            found["runtime"] = " ".join(str(client.platform_version).split())[:120]
    return found


source = Process
