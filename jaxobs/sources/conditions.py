"""Findings in how the process is: on the slow tick, all kinds that need a `Scene` look at one."""

from typing import Any

from jaxobs.facts.events import Event
from jaxobs.findings.cases import Scene
from jaxobs.findings.standing import Standing
from jaxobs.sources.support.source import Source, keep
from jaxobs.state.store import Store


class ConditionsSource(Source):
    """The source: the state and the rarer events in, findings out."""

    def _begin(self) -> None:
        self._findings = Standing(Scene)

    def sample(self) -> None:
        """Records what is new, and brings the rest up to date."""
        keep(self._store, self._findings.see(scene(self._store)))

    def concluding(self) -> None:
        """The last samples of all sources were taken."""
        self.sample()


def scene(store: Store) -> Scene:
    """Returns how the process of a store is."""
    return Scene(
        snapshot=store.snapshot(fresh=False),
        nonfinite=_latest(store, "nonfinite"),
        steps=_latest(store, "step"),
        errors=_latest(store, "error"),
        out_of_memory=_latest(store, "out_of_memory"),
        lookups=_latest(store, "cache_lookup"),
        compilations=[each for each in _latest(store, "compilation") if each.long],
    )


def _latest(store: Store, kind: str) -> Any:
    found: list[Event] = store.events(kind=kind)[0]
    return found


source = ConditionsSource
