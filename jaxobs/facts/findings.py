"""Patterns over time that need attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from jaxobs.facts.events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(Event):
    """A pattern over time that a person should know about. One that grows is reported again, with the same `id`."""

    kind: ClassVar[str] = "finding"

    id: str
    """Identity of the finding, by type, function and subject: equal for each report of one finding."""
    finding: str
    """Type of the finding, one of those in the folders of `jaxobs.findings`: `recompile_storm`, `array_leak`, ..."""
    function: str
    """As in `Compilation`; `<eager>` for operations outside any function of the user."""
    summary: str
    """A sentence for a person, with the figures."""
    advice: str
    """Advice for this case."""
    subject: str = ""
    """Subject inside the function: `batch['image'] dimension 0`, an operation, a call site."""
    severity: str = "warning"
    """Severity of the finding, one of `facts.verdicts.SEVERITIES`."""
    where: str | None = None
    """`file:line` in the user's code that it is mainly about."""
    count: int = 0
    """Compilations that belong to it; of a leak, samples in which it grew; of an input, batches; of others, how often
    it happened."""
    seconds: float = 0.0
    """Time that it took: of compilations, all phases; of an input, the time waited for it."""
    saves_seconds: float | None = None
    """How much of `seconds` following the advice would have saved; None if all of it, or if that is unknown."""
    bytes: int | None = None
    """Memory that it holds; None if it is not about memory."""
    since: float = 0.0
    """Time of the first of them."""
    ended: float | None = None
    """Time at which it ended by itself: what grew no longer grows; None while it is active."""
    evidence: tuple[str, ...] = ()
    """Sentences that show it: the latest compilations, with time, call site and change. Bounded."""
    sequences: tuple[int, ...] = ()
    """Numbers of the latest compilation events that belong to it. Bounded."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Figures of its type: the sizes seen, the buckets suggested, the padding that they would cost."""
