"""Diagnoses: one module for each fault, found by the folder.

Each has `KNOWN`, a `Knowledge`. Its name is the module's.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from jaxobs.base import discovery
from jaxobs.ops.diagnosis.knowledge import Knowledge

EACH_HAS = ("KNOWN",)


@functools.cache
def known() -> Mapping[str, Knowledge]:
    """All diagnoses by name."""
    return {each.__name__.rpartition(".")[2]: each.KNOWN for each in discovery.modules(__name__)}
