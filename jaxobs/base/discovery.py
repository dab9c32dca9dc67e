"""A folder is its own registry: every module in it is an entry, none is listed anywhere.

The folder's `__init__.py` declares what an entry has, as a `Protocol` that extends `Module`. mypy checks every entry
against it (`python -m tools.registries`), and a module that lacks some of it is refused by name. If a folder declares
several protocols, an entry needs one of them; a protocol that extends another names what some entries have besides.
What entries share, and the parts of a large one, lie in packages inside, which are not entries. If the folder says
`BY_SUBJECT = True`, its entries lie in the folders inside, one for each subject.
"""

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol, TypeVar, cast


class IncompleteError(Exception):
    """A module in a folder that is a registry lacks what each entry has; the message names both."""


class Module(Protocol):
    """A module, as far as every entry is one."""

    __name__: str
    __doc__: str | None


Entry = TypeVar("Entry", bound=Module)


def modules(form: type[Entry], failed: Callable[[str, Exception], None] | None = None) -> list[Entry]:
    """Returns the entries that have what `form` names, imported, in the order of their names.

    Args:
      form: a protocol; the folder is the package that declares it.
      failed: called with the name and the error of a module that cannot be imported or is incomplete, which is then
        left out; without it the error is raised.

    Raises:
      IncompleteError: a module has what none of the folder's protocols names.
    """
    package = form.__module__
    found = []
    for name in names(package):
        try:
            loaded = _load(package, name)
        except Exception as error:
            if failed is None:
                raise
            failed(f"{package}.{name}", error)
        else:
            found += [cast("Entry", loaded)] * (not missing(loaded, form))
    return found


def module(form: type[Entry], name: str) -> Entry:
    """Returns one entry and imports no other; raises `IncompleteError` or `ImportError` if it cannot."""
    return cast("Entry", _load(form.__module__, name))


def names(package: str) -> list[str]:
    """Returns the names of the entries of `package`, which are not imported; with `BY_SUBJECT`, as `subject.name`."""
    root = importlib.import_module(package)
    inside = list(pkgutil.iter_modules(root.__path__))
    if getattr(root, "BY_SUBJECT", False):
        subjects = [info.name for info in inside if info.ispkg]
        return sorted(f"{subject}.{name}" for subject in subjects for name in names(f"{package}.{subject}"))
    return sorted(info.name for info in inside if not info.ispkg)


def short_name(entry: Module) -> str:
    """Returns the name of an entry in its folder."""
    return entry.__name__.rpartition(".")[2]


def forms(package: str) -> list[Any]:
    """Returns the protocols that the `__init__.py` of `package` declares for its entries."""
    return _forms(importlib.import_module(package))


@functools.cache
def _forms(package: ModuleType) -> list[Any]:
    forms = (each for each in vars(package).values() if isinstance(each, type) and Module in each.__mro__[1:])
    return [each for each in forms if each.__module__ == package.__name__]


@functools.cache
def members(form: Any) -> list[str]:
    """Returns the names that an entry of this form has, as they are declared."""
    bases = reversed(form.__mro__)
    found = dict.fromkeys(name for base in bases for name in (*inspect.get_annotations(base), *vars(base)))
    return [name for name in found if not name.startswith("_")]


def missing(entry: Module | ModuleType, form: Any) -> list[str]:
    """Returns the names that the form asks for and the entry lacks."""
    return [name for name in members(form) if not hasattr(entry, name)]


def _load(package: str, name: str) -> ModuleType:
    loaded = importlib.import_module(f"{package}.{name}")
    declared = forms(package)
    choices = [form for form in declared if not set(form.__mro__[1:]) & set(declared)]
    lacks = min((missing(loaded, form) for form in choices), key=len)
    if lacks:
        raise IncompleteError(
            f"{loaded.__name__} has no {' and no '.join(f'`{each}`' for each in lacks)}, but each module in {package} "
            f"needs: {' | '.join(', '.join(members(form)) for form in choices)}. See "
            f"{package.replace('.', '/')}/__init__.py; move what is not an entry into a package inside."
        )
    return loaded
