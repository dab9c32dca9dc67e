"""Values that are part of a program's key, static arguments and pytree metadata, written as JSON.

Written by value are primitives and what is made of them; data types, and what can be imported, by name. Anything else
is opaque: its type's name is in its place, and it cannot be read back. Nothing is pickled and nothing imported.
`known_values` reads them back.
"""

import dataclasses
import enum
import inspect
import math
import sys
import types
from typing import Any

from jaxobs.reasons.described import field, module_of, qualname

MOST_TEXT = 120
MOST_ITEMS = 200
MOST_DEPTH = 8


def write(value: Any) -> Any:
    """`value` as JSON; what cannot be written is marked opaque. Never raises."""
    try:
        return _write(value, [MOST_ITEMS], MOST_DEPTH)
    except Exception:  # too large; or the attributes of a user's object, which may do anything
        return opaque(value)


def opaque(value: Any) -> dict[str, str]:
    """Returns the mark of a value that is not written down: a function's name, or that of its type."""
    if type(value) in (types.FunctionType, types.MethodType):
        return {"opaque": f"the {type(value).__name__} {value.__module__}.{value.__qualname__}"[:MOST_TEXT]}
    return opaque_type(type(value))


def opaque_type(kind: type) -> dict[str, str]:
    """Returns the mark of a type that an import would not find."""
    return {"opaque": f"a {module_of(kind)}.{qualname(kind)}"[:MOST_TEXT]}


def _write(value: Any, left: list[int], depth: int) -> Any:
    left[0] -= 1
    if left[0] < 0 or depth < 0:
        raise ValueError("too large")
    kind = type(value)
    if value is None or kind is bool or (kind is int and -(2**63) <= value < 2**64):
        return value
    if kind is float and math.isfinite(value):
        return value
    if kind is str and len(value) <= MOST_TEXT:
        return value
    if kind in (tuple, list, set, frozenset):
        items = [_write(each, left, depth - 1) for each in value]
        return {kind.__name__: sorted(items, key=repr) if kind in (set, frozenset) else items}
    if kind is dict:
        return {"dict": [[_write(key, left, depth - 1), _write(item, left, depth - 1)] for key, item in value.items()]}
    numpy = sys.modules.get("numpy")  # not to be imported where the program does without
    if numpy is not None and issubclass(kind, numpy.dtype) and value.names is None:
        return {"dtype": str(value)}
    if (path := import_path(value)) is not None:
        return {"import": path}
    if inspect.getattr_static(kind, "__dataclass_fields__", None) and (path := import_path(kind)) is not None:
        return _write_dataclass(value, path, left, depth)
    if (path := _name_of_singleton(value)) is not None:
        return {"import": path}
    return opaque(value)


def _write_dataclass(value: Any, path: str, left: list[int], depth: int) -> Any:
    fields = dataclasses.fields(type(value))
    if not all(each.init for each in fields) or "__init__" not in type(value).__dict__:
        return opaque(value)
    return {
        "dataclass": path,
        "fields": {each.name: _write(field(value, each.name), left, depth - 1) for each in fields},
    }


def _name_of_singleton(value: Any) -> str | None:
    """`module:name` where the module of its type has the same object, as it has a mark like `MISSING`."""
    module = module_of(type(value))
    for name, each in list(getattr(sys.modules.get(module), "__dict__", {}).items()):
        if each is value:
            return f"{module}:{name}"
    return None


def import_path(value: Any) -> str | None:
    """`module:qualname` of what an import would find again; None for anything else."""
    kind = type(value)
    if issubclass(kind, enum.Enum):
        module, path = module_of(kind), f"{qualname(kind)}.{field(value, '_name_')}"
    elif callable(value):
        named = (module_of(value), qualname(value)) if issubclass(kind, type) else None
        module, path = named or (field(value, "__module__"), field(value, "__qualname__"))
    else:
        return None
    if not all(type(name) is str and len(name) <= MOST_TEXT for name in (module, path)):
        return None
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = inspect.getattr_static(found, part, None)
        found = found.__func__ if type(found) in (staticmethod, classmethod) else found
    return f"{module}:{path}" if found is value else None
