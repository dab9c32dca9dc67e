"""All kinds of findings, and which of them follows from which.

A kind's module may have `FOLLOWS`: names of kinds that bring it about when they are about the same function; or
`follows(data)`, where that depends on the figures of a case. Of a case that follows from another, the other is what to
fix.
"""

import functools
from collections.abc import Mapping
from typing import Any, Protocol, TypeVar, runtime_checkable

from jaxobs.base import discovery
from jaxobs.facts.findings import Finding
from jaxobs.findings import Kind, LeakKind, LookingKind, WatchingKind

Evidence = TypeVar("Evidence")


@runtime_checkable
class _Following(Protocol):
    FOLLOWS: tuple[str, ...]


@runtime_checkable
class _FollowingByCase(Protocol):
    def follows(self, data: Mapping[str, Any], /) -> tuple[str, ...]: ...


@runtime_checkable
class _Steady(Protocol):
    STEADY: int


@runtime_checkable
class _LettingGo(Protocol):
    LETS_GO: int


@functools.cache
def every() -> tuple[Kind, ...]:
    """Returns all kinds, by how they find and by name."""
    return (*watching(), *leaks(), *_looking())


@functools.cache
def watching() -> tuple[WatchingKind, ...]:
    """Returns the kinds that watch compilations, by name."""
    return tuple(discovery.modules(WatchingKind))


@functools.cache
def leaks() -> tuple[LeakKind, ...]:
    """Returns the kinds of leaks, by name."""
    return tuple(discovery.modules(LeakKind))


def needing(evidence: type[Evidence]) -> tuple[LookingKind[Evidence], ...]:
    """Returns the kinds that find in this evidence, by name."""
    return tuple(kind for kind in _looking() if kind.NEEDS is evidence)


@functools.cache
def _looking() -> tuple[LookingKind[Any], ...]:
    return tuple(sorted(discovery.modules(LookingKind), key=lambda kind: kind.NAME))


def steady(kind: Kind) -> int:
    """Returns in how many looks in a row a case has to be seen until it is reported: `STEADY` of its kind, or 1."""
    return kind.STEADY if isinstance(kind, _Steady) else 1


def lets_go(kind: Kind) -> int | None:
    """Returns the looks in a row without a case after which the case is over: `LETS_GO` of its kind, or None."""
    return kind.LETS_GO if isinstance(kind, _LettingGo) else None


def follows(finding: Finding) -> tuple[str, ...]:
    """Returns the kinds that bring a finding about."""
    kind: object = _by_name().get(finding.finding)
    if isinstance(kind, _FollowingByCase):
        return kind.follows(finding.data)
    return kind.FOLLOWS if isinstance(kind, _Following) else ()


@functools.cache
def _by_name() -> dict[str, Kind]:
    return {kind.NAME: kind for kind in every()}
