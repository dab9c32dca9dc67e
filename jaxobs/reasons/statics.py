"""Static arguments and metadata of pytrees, compared without running code of the program."""

import functools
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jaxobs.internals import trees
from jaxobs.reasons import described, literals, naming
from jaxobs.reasons.texts import shortened

_PLAIN = frozenset((type(None), bool, int, float, complex, str, bytes, type))
"""Types whose equality no program can change."""
MOST_ITEMS = 4096
"""Items of a tuple that are compared one by one; a longer one is compared as a whole, by text and hash."""


@dataclass(frozen=True, slots=True, eq=False)
class Static:
    """A static argument, in its place among the leaves: text, type and hash stand for it.

    The object is not kept, and not asked whether it equals another: its `__eq__` is code of the program.
    """

    type: type
    text: str
    """Text of the value (see `described`), longer than what is shown."""
    hash: int
    equals_itself: bool = True
    by_identity: bool = False
    """True if the value's type compares by identity: another object is another value, however alike."""
    value: Callable[[], Any] = field(default=lambda: None, repr=False)
    """Gives the object while it lives; None for one that cannot be referred to weakly."""
    made_at: str | None = None
    """`file:line` of a function: many are called `<lambda>`."""
    written: Any = None
    """The value as `literals.write` writes it; opaque where values may not be recorded."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Static) or not (self.equals_itself and other.equals_itself):
            return False
        if (self.hash, self.type, self.text) != (other.hash, other.type, other.text):
            return False
        mine, its = self.value(), other.value()
        return mine is None or its is None or mine is its or not self.by_identity

    def may_differ(self, other: object) -> bool:
        """Whether `__eq__` of the program could tell this value from one that has the same type, text and hash."""
        mine, its = self.value(), other.value() if isinstance(other, Static) else None
        both = mine is not None and its is not None
        return both and mine is not its and described.has_own_equality(self.type)

    def __hash__(self) -> int:
        return self.hash

    def __str__(self) -> str:
        return shortened(self.text)


class Metadata:
    """Metadata of a pytree node, which compares as a static argument does."""

    def __init__(self, value: Any, quotes: bool, doubted: bool = False) -> None:
        """Holds a value of the program.

        Args:
          doubted: whether another object that only the program's `__eq__` could tell from this one is another value.
        """
        self.value, self.quotes, self._doubted = value, quotes, doubted

    @functools.cached_property
    def static(self) -> Static:
        """Stands for the value."""
        return static(self.value, self.quotes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Metadata) or self.value is other.value:
            return isinstance(other, Metadata)
        return not (self._doubted and described.has_own_equality(type(self.value))) and self.static == other.static

    def __hash__(self) -> int:
        return id(type(self.value))

    def __repr__(self) -> str:
        return str(self.static)


def alike(a: Any, b: Any) -> bool:
    """Returns whether two values of the program look equal."""
    return Metadata(a, True) == Metadata(b, True)


def hidden(tree: Any, quotes: bool = True) -> Any:
    """Returns a structure whose comparison runs no code of the program."""
    return _with_values(tree, lambda value: value if type(value) is Metadata else Metadata(value, quotes))


def doubted(tree: Any) -> Any:
    """Returns a hidden structure. Objects that the program's `__eq__` may distinguish equal only themselves in it."""
    return _with_values(tree, lambda value: Metadata(value.value, value.quotes, doubted=True))


def restored(tree: Any) -> Any:
    """Returns a hidden structure as JAX made it."""
    return trees.with_metadata(tree, shown)


def shown(data: Any) -> Any:
    """Returns the metadata of a node as the program gave it."""
    return _replaced(data, lambda value: value.value if type(value) is Metadata else value)


def _with_values(tree: Any, change: Callable[[Any], Any]) -> Any:
    return trees.with_metadata(tree, lambda data: _replaced(data, change), _PLAIN)


def _replaced(data: Any, change: Callable[[Any], Any]) -> Any:
    if _is_plain(data):
        return data
    return type(data)(_replaced(each, change) for each in data) if _has_items(data) else change(data)


def _has_items(data: Any) -> bool:
    return type(data) is list or (type(data) is tuple and len(data) <= MOST_ITEMS)  # a dictionary's keys stay a list


def _is_plain(data: Any) -> bool:
    kind = type(data)
    return kind in _PLAIN or issubclass(kind, type) or (_has_items(data) and all(map(_is_plain, data)))


def static(value: Any, values: bool = True) -> Static:
    """Returns the substitute of a static argument; its type alone where `values` must not be recorded."""
    kind = type(value)
    try:
        hashed = hash(value)
    except Exception:
        hashed = id(kind)
    try:
        reference: Callable[[], Any] = weakref.ref(value)
    except TypeError:
        reference = type(None)  # a value that cannot be referred to weakly
    return Static(
        kind,
        described.described(value) if values else described.qualname(kind),
        hashed,
        not (issubclass(kind, float) and float.__ne__(value, value)),
        described.by_identity(kind),
        reference,
        naming.made_at(value) if kind is types.FunctionType else None,
        literals.write(value) if values else literals.opaque(value),
    )
