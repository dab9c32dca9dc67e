"""What a process can be asked to do: one file for each action, found by the folder (see `capturing.action_types`)."""

from __future__ import annotations

import functools
from types import ModuleType

from jaxobs.base import discovery

EACH_HAS = ("NAME", "ABOUT", "PARAMETERS", "WAITED_FOR", "run")


@functools.cache
def known() -> dict[str, ModuleType]:
    """The modules of all actions by name."""
    return {each.NAME: each for each in discovery.modules(__name__)}
