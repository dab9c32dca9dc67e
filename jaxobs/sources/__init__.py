"""Sources of facts: one file for each thing that is watched, found by the folder.

A source's module has `source(store)`, which makes an object with `start`, `stop`, `sample` and `after_fork`. What
sources share lies in `support`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from jaxobs.base import discovery

if TYPE_CHECKING:
    from jaxobs.state.store import Store


class Source(Protocol):
    """Watches one thing and stores what it sees."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def sample(self) -> None: ...
    def after_fork(self) -> None: ...


class SourceModule(discovery.Module, Protocol):
    """Makes one source."""

    def source(self, store: Store, /) -> Source: ...
