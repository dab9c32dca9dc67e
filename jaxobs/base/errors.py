"""Errors that jaxobs raises when it is asked for something it cannot do.

    JaxobsError
    ├── SettingError      a setting has a value that it cannot have
    ├── ParameterError    an action is unknown, or a parameter of it does not fit
    ├── PortTakenError    the endpoint's port belongs to somebody else
    └── MissingExtraError an optional dependency is not installed

Nothing here is ever raised inside a user's jitted call: see `jaxobs.base.guard`.
"""

import difflib
import re
from collections.abc import Iterable

_LONGEST = 100


class JaxobsError(Exception):
    """Base of every error that jaxobs raises on purpose."""


class SettingError(JaxobsError, ValueError):
    """A setting is unknown, or its value does not fit it."""


class ParameterError(JaxobsError, ValueError):
    """There is no such action, or one of its parameters is unknown or has a value that does not fit it."""


class PortTakenError(JaxobsError, OSError):
    """Another process, or another endpoint of this one, listens on the port already."""


class MissingExtraError(JaxobsError, ImportError):
    """A part of jaxobs needs a package that the bare install does not bring."""

    def __init__(self, what: str, package: str, extra: str) -> None:
        super().__init__(f"`{what}` needs `{package}`, from the extra `{extra}`. Install it with: {install(extra)}")


def install(extra: str) -> str:
    """Returns the command that installs an extra's packages: it works without a clone, and before a release."""
    import importlib.metadata  # not before an error needs it

    try:
        required = importlib.metadata.requires("jaxobs") or []
    except importlib.metadata.PackageNotFoundError:  # a folder of sources on the path
        required = []
    wanted = re.compile(rf"(.+?) *; *extra == ['\"]{extra}['\"]")
    packages = [found[1] for line in required if (found := wanted.fullmatch(line))]
    return " ".join(["pip install", *(f"'{package}'" for package in packages or [f".[{extra}]"])])


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``Did you mean `x`? `` for the name that is nearest, with a space behind it; empty if all are far.

    A name that was cut short (`--peak`) counts as near, however much of it is missing.
    """
    name = name[:_LONGEST]  # it may come from anywhere, and the comparison takes its length squared
    names = sorted(known, key=len)
    longer = [each for each in names if each.startswith(name)] if len(name.lstrip("-")) > 1 else []
    close = longer or difflib.get_close_matches(name, names, 1)
    return f"Did you mean `{close[0]}`? " if close else ""
