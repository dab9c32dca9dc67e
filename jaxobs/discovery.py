"""A folder is its own registry: every module in it is found, none is listed."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from types import ModuleType


def modules(package: str, failed: Callable[[str, Exception], None] | None = None) -> list[ModuleType]:
    """The modules directly inside `package`, imported, in the order of their names.

    Args:
      failed: called with the name and the error of a module that cannot be imported, which is then left out;
        without it the error is raised.
    """
    root = importlib.import_module(package)
    found = []
    for name in sorted(f"{package}.{info.name}" for info in pkgutil.iter_modules(root.__path__)):
        try:
            found.append(importlib.import_module(name))
        except Exception as error:
            if failed is None:
                raise
            failed(name, error)
    return found
