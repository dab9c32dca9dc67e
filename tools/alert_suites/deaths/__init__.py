"""Kinds of death and decay."""

from __future__ import annotations

from tools.alert_suites.deaths import serving, training
from tools.alert_suites.kinds import Death


def deaths() -> list[Death]:
    """All kinds of death, by name."""
    return sorted((*serving.DEATHS, *training.DEATHS), key=lambda death: death.name)
