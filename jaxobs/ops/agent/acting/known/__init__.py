"""What the agent may be allowed to do: one file for each action, found by the folder (see `acting.declarations`)."""

from __future__ import annotations

import functools
from types import ModuleType

from jaxobs.base import discovery

EACH_HAS = ("DECLARATION", "plan", "run")


@functools.cache
def known() -> dict[str, ModuleType]:
    """The modules of all actions by name."""
    return {each.DECLARATION.name: each for each in discovery.modules(__name__)}
