"""Inputs: on the slow tick, receipts of what goes through `jaxobs.data` into the manifest, and findings about it."""

from __future__ import annotations

import dataclasses
import time

from jaxobs.facts.inputs import DataReceipt
from jaxobs.facts.process import Manifest
from jaxobs.findings.input_findings import InputFindings
from jaxobs.sources.support.source import Source, keep
from jaxobs.state.input_waits import Inputs
from jaxobs.state.store import Store


class InputsSource(Source):
    """The source: what the meters know in; manifests and findings out."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.after_fork()

    def after_fork(self) -> None:
        """In a forked child: nothing was taken yet."""
        self._findings = InputFindings()

    def sample(self) -> None:
        """Tells what is new."""
        inputs = self._store.part(Inputs)
        receipts = tuple(inputs.complete())
        self._tell(receipts)
        done = {each.name for each in receipts}
        # A receipt that is not complete may still change its mind.
        states = [each if each.name in done else dataclasses.replace(each, receipt=None) for each in inputs.frozen()]
        keep(self._store, self._findings.see(states, time.time()))

    def ending(self) -> None:
        """The program has ended: what few batches there were is all that there will be."""
        self._store.part(Inputs).close()

    def _tell(self, receipts: tuple[DataReceipt, ...]) -> None:
        """Tells the manifest again, whole: an event cannot be changed, and a reader takes the latest."""
        manifests = self._store.events(kind=Manifest.kind)[0]
        latest = manifests[-1] if manifests else None
        if isinstance(latest, Manifest) and latest.data != receipts:
            self._store.record(dataclasses.replace(latest, time=time.time(), data=receipts))


source = InputsSource
