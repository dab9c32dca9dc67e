"""Means of a person without a diagnosis: a table of alerts and error texts, and the loudest signal."""

from __future__ import annotations

import functools
from collections import Counter

from jaxobs.ops.diagnosis.evidence import ALERT, Evidence, Observation
from jaxobs.ops.diagnosis.knowledge import CAUSE, Alert, AnySign, Knowledge, Metric
from jaxobs.ops.diagnosis.known import known


def _meant(observation: Observation) -> str | None:
    """The most special fault with a sign that this observation shows."""
    return next((name for name, signs in _table() if any(sign.shows(observation) for sign in signs)), None)


@functools.cache
def _table() -> list[tuple[str, list[AnySign]]]:
    """The signs of each cause, the most special cause first."""
    causes = sorted((fault.general, name) for name, fault in known().items() if fault.role == CAUSE)
    return [(name, [sign for sign in known()[name].signs if not _is_judged(known()[name], sign)]) for _, name in causes]


def _is_judged(fault: Knowledge, sign: AnySign) -> bool:
    """Whether a sample is a sign in view of others only, which a table does not look at."""
    return isinstance(sign, Metric) and fault.ordinary is not None


def first_error(evidence: Evidence) -> str | None:
    """A look-up in a table: by the name of the alert that fires first, else by the first text that is in the table."""
    alerts = [each for each in evidence.observations if each.kind == ALERT]
    for alert in alerts:
        for name, fault in sorted(known().items()):
            if any(isinstance(sign, Alert) and sign.shows(alert) for sign in fault.signs):
                return name
    return next((meant for each in evidence.observations if (meant := _meant(each)) is not None), None)


def loudest(evidence: Evidence) -> str | None:
    """The fault with the most signals, or the largest deviation."""
    counts = Counter(name for each in evidence.observations if (name := _meant(each)) is not None)
    return max(counts, key=lambda name: (counts[name], name), default=None)


BASELINES = {"alert and first error": first_error, "loudest signal": loudest}
