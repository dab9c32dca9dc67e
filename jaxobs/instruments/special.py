"""Special methods of what is wrapped: Python looks them up on the type, so that the wrapper's own type needs them.

Each is there only if the wrapped one's type has it: whether an object can be indexed is known by its methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_BINARY = (
    "add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow", "lshift", "rshift", "and", "xor",
    "or",
)  # fmt: skip
_NAMES = (
    "lt", "le", "eq", "ne", "gt", "ge", "hash", "bool", "len", "length_hint", "getitem", "setitem", "delitem",
    "missing", "contains", "reversed", "iter", "next", "aiter", "anext", "await", "enter", "exit", "aenter", "aexit",
    "neg", "pos", "abs", "invert", "complex", "int", "float", "index", "round", "trunc", "floor", "ceil", "str",
    "format", "bytes", "fspath", "buffer", "release_buffer",
    *_BINARY, *(f"r{each}" for each in _BINARY), *(f"i{each}" for each in _BINARY if each != "divmod"),
)  # fmt: skip
NAMES = frozenset(f"__{each}__" for each in _NAMES)
"""Special methods that Python looks up, but for those that make, copy, represent, pickle and bind an object. """


def of(kind: type) -> frozenset[str]:
    """The special methods that a type has, other than those which every object has."""
    members = [vars(each) for each in kind.__mro__ if each is not object]
    found = frozenset(name for name in NAMES if any(name in each for each in members))
    return found | {"__hash__"} if "__eq__" in found else found  # a class that is made with `__eq__` alone has none


def delegated(name: str, inner_of: Callable[[Any], Any], kind: type, wrapped: type) -> Any:
    """The method of that name for a wrapper: it calls the one of what is wrapped, an object of `kind`.

    Args:
      name: one of `of(kind)`.
      inner_of: gives what a wrapper wraps.
      kind: the type of what is wrapped.
      wrapped: of wrappers, which as other arguments (of a comparison, a sum) stand for what they wrap.
    """
    if name == "__hash__":
        return lambda self: hash(inner_of(self))
    if getattr(kind, name) is None:  # taken away
        return None

    if name == "__aenter__":

        async def enter(self: Any) -> Any:
            inner = inner_of(self)
            entered = await type(inner).__aenter__(inner)
            return self if entered is inner else entered

        return enter

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        inner = inner_of(self)
        given = [inner_of(each) if issubclass(type(each), wrapped) else each for each in args]
        result = getattr(type(inner), name)(inner, *given, **kwargs)
        return self if result is inner else result

    call.__name__ = name
    return call


def of_a_class(inner_of: Callable[[Any], Any]) -> dict[str, Any]:
    """Further methods of a wrapper of a class: classes derive from it, and it is asked about instances and parameters.

    Only a class can be what `except`, a pattern of `match`, and `super` with arguments name.
    """

    def __mro_entries__(self: Any, bases: tuple[Any, ...]) -> tuple[type, ...]:  # noqa: N807
        return (inner_of(self),)

    def __instancecheck__(self: Any, instance: Any) -> bool:  # noqa: N807
        return isinstance(instance, inner_of(self))

    def __subclasscheck__(self: Any, other: Any) -> bool:  # noqa: N807
        return issubclass(inner_of(other), inner_of(self))

    def __getitem__(self: Any, item: Any) -> Any:  # noqa: N807
        return inner_of(self)[item]

    methods = (__mro_entries__, __instancecheck__, __subclasscheck__, __getitem__)
    # `issubclass` asks what is no class for its bases.
    bases = property(lambda self: (inner_of(self),))
    return {"__bases__": bases, **{each.__name__: each for each in methods}}
