"""A folder is its own registry: every module in it is an entry, none is listed anywhere.

The package says what each entry has, in `EACH_HAS`, and a module that lacks some of it is refused by name. What entries
share, and the parts of a large one, lie in packages inside, which are no entries.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from types import ModuleType


class IncompleteError(Exception):
    """A module in a folder that is a registry lacks what each entry has; the message names both."""


def modules(package: str, failed: Callable[[str, Exception], None] | None = None) -> list[ModuleType]:
    """The entries of `package`: the modules directly inside it, imported, in the order of their names.

    Args:
      failed: called with the name and the error of a module that cannot be imported or is incomplete, which is then
        left out; without it the error is raised.

    Raises:
      IncompleteError: a module lacks something that `EACH_HAS` of the package names.
    """
    root = importlib.import_module(package)
    found = []
    for name in names(package):
        try:
            module = importlib.import_module(f"{package}.{name}")
            _check(module, root)
            found.append(module)
        except Exception as error:
            if failed is None:
                raise
            failed(f"{package}.{name}", error)
    return found


def names(package: str) -> list[str]:
    """The names of the entries of `package`, which are not imported."""
    root = importlib.import_module(package)
    return sorted(info.name for info in pkgutil.iter_modules(root.__path__) if not info.ispkg)


def _check(module: ModuleType, root: ModuleType) -> None:
    """Each text in `EACH_HAS` is a name, or several of which one is enough: `exporter | routes`."""
    wanted = getattr(root, "EACH_HAS", ())
    missing = [each for each in wanted if not any(hasattr(module, name) for name in each.split(" | "))]
    if missing:
        raise IncompleteError(
            f"{module.__name__} has no {' and no '.join(f'`{each}`' for each in missing)}, but each module in "
            f"{root.__name__} needs: {', '.join(wanted)}. See {root.__name__.replace('.', '/')}/__init__.py; move "
            "what is not an entry into a package inside."
        )
