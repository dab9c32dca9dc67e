"""Inputs: on the slow tick, receipts of what goes through `jaxobs.data` into the manifest, and findings about it."""

from __future__ import annotations

import dataclasses
import time

from jaxobs.facts import DataReceipt, Manifest
from jaxobs.input_findings import InputFindings
from jaxobs.input_waits import Inputs
from jaxobs.store import Store


class InputsSource:
    """The source: what the meters know in; manifests and findings out."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.after_fork()

    def start(self) -> None:
        """Nothing to prepare."""

    def stop(self) -> None:
        """Nothing to undo."""

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
        for finding, news in self._findings.see(states, time.time()):
            if news:
                self._store.record(finding)
            else:
                self._store.refresh_finding(finding)

    def ending(self) -> None:
        """The program has ended: what few batches there were is all that there will be."""
        self._store.part(Inputs).close()

    def _tell(self, receipts: tuple[DataReceipt, ...]) -> None:
        """Tells the manifest again, whole: an event cannot be changed, and a reader takes the latest."""
        manifests = self._store.events(kind=Manifest.kind)[0]
        latest = manifests[-1] if manifests else None
        if isinstance(latest, Manifest) and latest.data != receipts:
            self._store.record(dataclasses.replace(latest, time=time.time(), data=receipts))


def source(store: Store) -> InputsSource:
    """What the folder's discovery asks every source for."""
    return InputsSource(store)
