"""Diagnoses: one module for each fault, found by the folder.

Each has `KNOWN`, a `Knowledge`. Its name is the module's.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Protocol

from jaxobs.base import discovery
from jaxobs.ops.diagnosis.knowledge import Knowledge


class KnowledgeModule(discovery.Module, Protocol):
    """Declares one diagnosis."""

    KNOWN: Knowledge


@functools.cache
def known() -> Mapping[str, Knowledge]:
    """All diagnoses by name."""
    return {discovery.short_name(each): each.KNOWN for each in discovery.modules(KnowledgeModule)}
