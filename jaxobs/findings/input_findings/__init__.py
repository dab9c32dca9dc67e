"""What a person should know of inputs: states of `jaxobs.data` in, findings out; one file for each kind.

A kind's module has `NAME`, the finding's type; `ABOUT` and `TOLD_WHEN`, for the reference; and `watch()`, which makes a
`Kind` for one input.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from jaxobs.base import discovery
from jaxobs.facts.findings import Finding
from jaxobs.facts.inputs import InputState
from jaxobs.findings import kinds

UNKNOWN = "<unknown>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """What a kind says of an input as it stands."""

    since: float
    summary: str
    advice: str
    seconds: float = 0.0
    """Time lost, where it is known."""
    evidence: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)


class Kind(Protocol):
    """One kind of finding about one input."""

    def see(self, state: InputState, now: float) -> Telling | None:
        """What to tell of it, None while there is nothing, or no more."""


class InputKind(kinds.Kind, Protocol):
    """Watches one input."""

    def watch(self) -> Kind: ...


@functools.cache
def known() -> tuple[InputKind, ...]:
    """The modules of all kinds."""
    return tuple(discovery.modules(InputKind))


@dataclass(slots=True)
class _Watched:
    kind: Kind
    name: str
    """The finding's type."""
    finding: Finding | None = None
    told_seconds: float = 0.0


class InputFindings:
    """All kinds over all inputs of one process. Not thread-safe: its owner looks on one thread at a time."""

    def __init__(self) -> None:
        self._watched: dict[str, list[_Watched]] = {}

    def see(self, states: Iterable[InputState], now: float) -> Iterable[tuple[Finding, bool]]:
        """The findings that stand or have just ended, and whether each is news: new, doubled or over."""
        for state in states:
            for each in self._watched.setdefault(state.name, [_Watched(k.watch(), k.NAME) for k in known()]):
                telling = each.kind.see(state, now)
                if telling is not None:
                    yield self._tell(each, state, telling, now)
                elif each.finding is not None:
                    over = f"{each.finding.summary} This is over now."
                    ended = dataclasses.replace(
                        each.finding, time=now, ended=now, summary=over, advice="No action is needed: it is over."
                    )
                    each.finding = None
                    yield ended, True

    def _tell(self, each: _Watched, state: InputState, telling: Telling, now: float) -> tuple[Finding, bool]:
        news = each.finding is None or telling.seconds >= 2 * max(each.told_seconds, 1.0)
        if news:
            each.told_seconds = telling.seconds
        each.finding = Finding(
            time=now,
            id=f"{each.name}-{hashlib.sha256(f'{each.name} {state.name}'.encode()).hexdigest()[:12]}",
            finding=each.name,
            function=UNKNOWN,
            subject=state.name,
            summary=telling.summary,
            advice=telling.advice,
            count=state.batches,
            seconds=telling.seconds,
            since=telling.since,
            evidence=telling.evidence,
            data=telling.data,
        )
        return each.finding, news
