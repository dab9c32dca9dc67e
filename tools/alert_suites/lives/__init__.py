"""Kinds of ordinary life."""

from __future__ import annotations

from tools.alert_suites.kinds import Life
from tools.alert_suites.lives import batch, serving, training


def lives() -> list[Life]:
    """All kinds of life, by name."""
    return sorted((*batch.LIVES, *serving.LIVES, *training.LIVES), key=lambda life: life.name)
