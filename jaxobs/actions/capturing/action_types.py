"""The form of an action: its parameters, the job that it is given, and its result.

An action's module has `NAME`; `ABOUT`, a sentence; `PARAMETERS`; `WAITED_FOR`, whether who asks over HTTP waits for its
end; and `run(job)`, which writes into the job's folder. It may have `check(store, values)`, to refuse parameters that
make no sense in this process.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jaxobs.base import threads
from jaxobs.base.errors import ParameterError, did_you_mean
from jaxobs.state.store import Store


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an action."""

    name: str
    kind: type
    """`int`, `float`, `bool` or `str`."""
    default: Any
    about: str
    least: float = -math.inf
    most: float = math.inf

    def parsed(self, value: Any) -> Any:
        """Returns the value in the parameter's type, also from a query's text; raises `ParameterError`."""
        try:
            found = _PARSE[self.kind](value)
        except (KeyError, OverflowError, TypeError, ValueError):
            raise ParameterError(
                f"`{self.name}` is {value!r:.100}, which is not a valid {_KINDS[self.kind]}. {self.about}"
            ) from None
        if self.kind in (int, float) and not self.least <= found <= self.most:
            raise ParameterError(
                f"`{self.name}` is {value!r:.100}, but must be from {self.least:g} to {self.most:g}. {self.about}"
            )
        return found


_KINDS: dict[type, str] = {int: "integer", float: "number", bool: "Boolean (true or false)", str: "text"}
_TRUTH = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    return float(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise TypeError
    return int(value)


def _truth(value: Any) -> bool:
    return value if isinstance(value, bool) else _TRUTH[str(value).lower()]


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError
    return value


_PARSE: dict[type, Callable[[Any], Any]] = {int: _whole, float: _number, bool: _truth, str: _text}


def parsed(action: str, parameters: Iterable[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of all parameters of an action: those given, and the defaults of the others.

    Raises:
      ParameterError: one is unknown or does not fit.
    """
    known = {each.name: each for each in parameters}
    unknown = sorted(str(name)[:100] for name in set(given) - set(known))
    if unknown:
        raise ParameterError(
            f"`{action}` has no parameter {', '.join(f'`{name}`' for name in unknown[:5])}. "
            f"{did_you_mean(unknown[0], known)}Known parameters: {', '.join(known) or 'none'}."
        )
    return {name: each.default if given.get(name) is None else each.parsed(given[name]) for name, each in known.items()}


class Refused(Exception):  # noqa: N818 - an outcome, told as such
    """The action cannot be done now; the message says why and what to do, as a sentence for a person."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of an action that was done."""

    detail: str | None = None
    """A sentence for a person: what was captured."""
    main: str | None = None
    """The file in the folder to look at; None for the folder."""


@dataclass(slots=True)
class Job:
    """A run of an action, on a thread of its own."""

    store: Store
    values: Mapping[str, Any]
    folder: str
    """An empty directory of its own, for its user only; it gets its final name when the action is done."""
    most_bytes: int
    """Bytes that the files may take together."""
    stopping: threads.Event
    """Set when it is to end early, with what there is: at exit, by `Capture.stop`."""
    started: Callable[[], None]
    """To be called once it can no longer be refused."""
