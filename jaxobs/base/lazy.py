"""A module that is imported when something of it is first used: a process that does not need it stays light."""

import importlib
from typing import Any


class LazyModule:
    """Stands for a module; each name of it is looked up once."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(importlib.import_module(self._name), name)
        setattr(self, name, found)
        return found
