"""Findings about what goes through `jaxobs.data`, on the slow tick."""

from __future__ import annotations

import time

from jaxobs.findings.input.support.waits import Looks, Waits
from jaxobs.findings.standing import Standing
from jaxobs.sources.support.source import Source, keep
from jaxobs.state.input_waits import Inputs


class InputsSource(Source):
    """The source: what the meters know in, findings out."""

    def _begin(self) -> None:
        self._looks, self._findings = Looks(), Standing(Waits)

    def sample(self) -> None:
        """Keeps the findings that are new or over."""
        keep(self._store, self._findings.see(self._looks.look(self._store.part(Inputs).frozen(), time.time())))


source = InputsSource
