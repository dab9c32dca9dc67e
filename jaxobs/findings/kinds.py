"""What the module of every kind of finding has, whatever it is found in."""

from __future__ import annotations

from typing import Protocol

from jaxobs.base import discovery


class Kind(discovery.Module, Protocol):
    """One kind of finding."""

    NAME: str
    """The finding's type."""
    ABOUT: str
    """One sentence for the reference."""
    TOLD_WHEN: str
    """Condition under which it is reported, for the reference."""
