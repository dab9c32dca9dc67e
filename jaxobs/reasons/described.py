"""Texts of static arguments and pytree metadata, made without running code of the program.

`__repr__`, `__eq__`, `__getattr__` and properties may take a lock that the caller holds, compute with JAX, or end the
process. So types are looked up in classes, items are read by the methods of the builtin types, and fields as they lie
in the instance, but for those with `repr=False`. Where any other type has a `__repr__` of its own, what its values hold
may be a secret: the text is the type.
"""

import collections
import enum
import functools
import inspect
import itertools
import sys
import types
from collections.abc import Iterable
from typing import Any

MOST_ITEMS = 200
"""Values in the text of one value. A longer container tells how many items it has."""
MOST_DEPTH = 8
MOST_BITS = 4096
"""The text of a longer integer is its size: the time to write the digits grows with the square of their number."""
MOST_TEXT = 1000

_SIMPLE = (type(None), type(...), type(NotImplemented), range, bool, int, float, complex)
_CONTAINERS = (tuple, list, set, frozenset, collections.deque, dict)
_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)
_LIBRARIES = ("jax", "jaxlib", "numpy", "ml_dtypes", "jaxobs")
_ARRAYS = ("ArrayImpl", "PRNGKeyArray", "Ref", "ArrayRef", "MutableArray")
"""Classes of JAX whose `__repr__` shows what an array holds."""
_LONG = ("PyTreeDef", "Jaxpr", "ClosedJaxpr", "JaxprEqn")
"""Classes of JAX whose `__repr__` takes as long as a program is large, or runs that of the program's objects."""
_HOLD = ("_partitions", "axis_names", "spec", "mesh")
"""Attributes of JAX's shardings and meshes that hold the names of axes, which may be objects of the program."""
name_of, qualname, module_of = (vars(type)[name].__get__ for name in ("__name__", "__qualname__", "__module__"))
"""Names of a class and of its module, whatever its metaclass would give for them."""


def described(value: Any) -> str:
    """Text of a value: builtins, and fields of dataclasses, named tuples and enums by value; others by their type."""
    return _told(value, [MOST_ITEMS], MOST_DEPTH)[:MOST_TEXT]


def by_identity(kind: type) -> bool:
    """Whether another object of the type is another value, however alike."""
    return inspect.getattr_static(kind, "__eq__") is vars(object)["__eq__"]


def has_own_equality(kind: type) -> bool:
    """Whether a class of the program says by an `__eq__` that somebody wrote which values are equal."""
    found = inspect.getattr_static(kind, "__eq__")
    return type(found) is types.FunctionType and found.__code__.co_filename != "<string>"


def field(value: Any, name: str) -> Any:
    """Attribute as it lies in the dictionary or the slot of an instance; `...` where only code would give it."""
    found = inspect.getattr_static(value, name, ...)
    return found.__get__(value, type(value)) if type(found) in _DESCRIPTORS else found


def function_name(value: Any) -> str | None:
    """`module.qualname` of a function, a class, or a wrapper that carries the names of one; None for other values."""
    if not callable(value):
        return None
    if type(value) is types.MethodType:
        value = value.__func__
    kind = issubclass(type(value), type)
    names = [qualname(value)] if kind else [field(value, "__qualname__")]
    name = next((each for each in (*names, field(value, "__name__")) if type(each) is str), None)
    module = field(value, "__module__")
    return f"{module}.{name}" if name and type(module) is str else name


def _told(value: Any, left: list[int], depth: int) -> str:
    left[0] -= 1
    kind = type(value)
    name = qualname(kind)
    if left[0] < 0 or depth < 0:
        return "…"
    if kind is int and value.bit_length() > MOST_BITS:
        return f"an int of {value.bit_length()} bits"
    if kind in _SIMPLE:
        return repr(value)
    if kind in (str, bytes, bytearray):
        return repr(value[:MOST_TEXT])
    if issubclass(kind, enum.Enum):
        return f"{name}.{field(value, '_name_')}"
    if kind is slice:
        return f"slice({_pairs((('', each) for each in (value.start, value.stop, value.step)), left, depth)})"
    if issubclass(kind, functools.partial):
        given = itertools.chain([("", value.func)], (("", each) for each in value.args), value.keywords.items())
        return f"{name}({_pairs(given, left, depth)})"
    if (path := function_name(value)) is not None:
        return path
    if isinstance(fields := inspect.getattr_static(kind, "__dataclass_fields__", None), dict):
        names = [each for each, about in fields.items() if about.repr]
        return f"{name}({_pairs(((each, field(value, each)) for each in names), left, depth)})"
    for base in _CONTAINERS:
        if issubclass(kind, base):
            return _container(value, kind, base, left, depth)
    if _is_of_a_library(kind):
        numpy = sys.modules.get("numpy")
        if name in _ARRAYS or (numpy is not None and issubclass(kind, numpy.ndarray)):
            return f"{value.dtype}[{','.join(map(str, value.shape))}]"
        if not _is_plain(value):
            return f"{name}({_pairs((('', each) for each in _held(value)), left, depth)})"
        return name if name in _LONG else repr(value)[:MOST_TEXT]
    return f"<{module_of(kind)}.{name} object>"


def _is_of_a_library(kind: type) -> bool:
    module = module_of(kind)
    return type(module) is str and module.partition(".")[0] in _LIBRARIES


def _is_plain(value: Any) -> bool:
    """Returns whether the `repr` of a library's object prints no object of the program with it."""
    kind = type(value)
    parts = value if kind in (tuple, frozenset) else _held(value) if _is_of_a_library(kind) else None
    return kind in (str, *_SIMPLE) if parts is None else all(map(_is_plain, parts))


def _held(value: Any) -> list[Any]:
    return [getattr(value, name) for name in _HOLD if hasattr(value, name)]


def _container(value: Any, kind: type, base: Any, left: list[int], depth: int) -> str:
    names = inspect.getattr_static(kind, "_fields", None)
    if base is tuple and type(names) is tuple:
        return f"{name_of(kind)}({_pairs(zip(names, tuple.__iter__(value), strict=False), left, depth)})"
    if kind is not base and module_of(kind) != "collections" and "__repr__" in vars(type)["__dict__"].__get__(kind):
        return f"<{module_of(kind)}.{qualname(kind)} object>"
    size, most = base.__len__(value), max(0, left[0])
    if base is dict:
        items = [
            f"{_told(each, left, depth - 1)}: {_told(item, left, depth - 1)}"
            for each, item in itertools.islice(dict.items(value), most)
        ]
    else:
        items = [_told(each, left, depth - 1) for each in itertools.islice(base.__iter__(value), most)]
    items = sorted(items) if base in (set, frozenset) else items
    text = f"{size} items: " * (size > most) + ", ".join(items)
    if kind is tuple:
        return f"({text},)" if size == 1 else f"({text})"
    if kind in (list, set, dict) and (size or kind is not set):
        return f"{'[' if kind is list else '{'}{text}{']' if kind is list else '}'}"
    return f"{name_of(kind)}({text})"


def _pairs(pairs: Iterable[tuple[str, Any]], left: list[int], depth: int) -> str:
    return ", ".join(
        f"{name}={_told(each, left, depth - 1)}" if name else _told(each, left, depth - 1) for name, each in pairs
    )
