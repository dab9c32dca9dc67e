"""A source of accelerators under test: what the store and the metrics know after a sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxobs.facts.accelerators import AcceleratorState
from jaxobs.metrics.catalogue import METRICS
from jaxobs.state.store import Store
from jaxobs.testing import FakeClient, backends


class Watch:
    """A source, its store, and what the store knows of each device after a sample."""

    def __init__(self, make: Callable[[Store], Any], client: FakeClient) -> None:
        self.store = Store()
        self.source = make(self.store)
        self._client = client

    def sample(self) -> dict[str, AcceleratorState]:
        with backends(self._client):
            self.source.sample()
        return {state.device: state for state in self.store.snapshot().accelerators}

    def metrics(self) -> dict[tuple[str, ...], Any]:
        """Samples of `accelerator_*` by name and labels."""
        snapshot = self.store.snapshot()
        return {
            (metric.name, *labels): value
            for metric in METRICS
            if metric.name.startswith("accelerator_")
            for labels, value in metric.read(snapshot)
        }
