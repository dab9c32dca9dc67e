"""What jaxobs raises when it is asked for something it cannot do.

    JaxobsError
    ├── SettingError      a setting has a value that it cannot have
    ├── ParameterError    an action is unknown, or a parameter of it does not fit
    ├── PortTakenError    the endpoint's port belongs to somebody else
    └── MissingExtraError an optional dependency is not installed

Nothing here is ever raised inside a user's jitted call: see `jaxobs.base.guard`.
"""

from __future__ import annotations


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
        super().__init__(f"`{what}` needs `{package}`. Install it with: pip install 'jaxobs[{extra}]'")
