"""A folder is its own registry: every module in it is found, none is listed."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType


def modules(package: str) -> list[ModuleType]:
    """The modules directly inside `package`, imported, in the order of their names."""
    root = importlib.import_module(package)
    names = sorted(info.name for info in pkgutil.iter_modules(root.__path__))
    return [importlib.import_module(f"{package}.{name}") for name in names]
