"""The base class of most sources, and how they keep their findings."""

from collections.abc import Callable, Iterable

from jaxobs.facts.events import Event
from jaxobs.facts.findings import Finding
from jaxobs.state.store import Store


class Source:
    """A source that has nothing to prepare, to undo, to forget or to sample."""

    rank = 0
    """Sources are sampled in the order of their ranks, and by name where the ranks are equal."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._begin()

    def _begin(self) -> None:
        """Forgets all that was seen: at first, and in a forked child."""

    def start(self) -> None:
        """Begins to watch."""

    def stop(self) -> None:
        """Undoes `start`."""

    def after_fork(self) -> None:
        """In a forked child: what was the parent's is forgotten."""
        self._begin()

    def sample(self) -> None:
        """Called on the slow tick."""


class Subscriber(Source):
    """A source that sees each event as it is recorded."""

    answers = False
    """True for a source that records events of its own in answer to some."""

    _unsubscribe: Callable[[], None] | None = None

    def start(self) -> None:
        """Begins to watch. Idempotent."""
        if self._unsubscribe is None:
            self._unsubscribe = self._store.subscribe(self._on_event, answers=self.answers)

    def stop(self) -> None:
        """Watches no more; what was recorded stays with the store."""
        unsubscribe, self._unsubscribe = self._unsubscribe, None
        if unsubscribe is not None:
            unsubscribe()

    def _on_event(self, event: Event) -> None:
        raise NotImplementedError


def keep(store: Store, findings: Iterable[tuple[Finding, bool]]) -> None:
    """Records the findings that are news, and brings the others up to date."""
    for finding, news in findings:
        if news:
            store.record(finding)
        else:
            store.refresh_finding(finding)
