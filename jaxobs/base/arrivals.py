"""Whether an array is there yet, asked without waiting for it."""

import itertools
import weakref
from collections.abc import Iterator
from types import ModuleType
from typing import Any

_MOST_DEEP, _MOST_OBJECTS = 6, 256
array_class: type | None = None
"""The class of the latest array that was found: there is one class as a rule."""


def deleted(array: Any) -> bool:
    """Returns whether an array's memory was donated to another program, or given back."""
    return bool(array.is_deleted())


def arrived(leaf: Any) -> bool:
    """Returns whether nothing is left to wait for: the value is there, is not on a device, or was deleted."""
    if not hasattr(leaf, "is_ready"):
        return True
    try:
        return bool(deleted(leaf) or leaf.is_ready())
    except RuntimeError:  # deleted in between
        return True


def is_array(value: Any) -> bool:
    """Returns whether a value is an array of JAX itself."""
    global array_class
    kind = type(value)
    if kind is array_class:
        return True
    found = hasattr(kind, "is_ready") and str(kind.__module__).startswith("jaxlib.")
    array_class = kind if found else array_class
    return found


def arrays(value: Any) -> Iterator[Any]:
    """Yields JAX's arrays inside a value, as far as few objects lead, running no code of the types around them."""
    waiting = [value]
    for _ in range(_MOST_OBJECTS):
        if not waiting:
            return
        latest = waiting.pop()
        if is_array(latest):
            yield latest
        elif (base := _sequence(latest)) is not None:
            waiting += itertools.islice(base.__iter__(latest), _MOST_OBJECTS)
        else:
            waiting += itertools.islice(_fields(latest).values(), _MOST_OBJECTS)


def reference(output: Any) -> weakref.ref[Any] | None:
    """Returns a weak reference to an array in what a call returned, running no code of the types around the array.

    None where there is none, or too deep inside.
    """
    for _ in range(_MOST_DEEP):
        kind = type(output)
        if kind is tuple or kind is list:
            output = output[-1] if output else None
        elif kind is dict:
            output = next(iter(output.values()), None)
        elif is_array(output):
            return weakref.ref(output)
        elif (base := _sequence(output)) is not None:
            output = base.__getitem__(output, -1) if base.__len__(output) else None
        else:
            output = next(iter(_fields(output).values()), None)
    return None


def _sequence(value: Any) -> type[Any] | None:
    return next((base for base in (tuple, list) if issubclass(type(value), base)), None)


def _fields(value: Any) -> dict[Any, Any]:
    try:
        fields = value if type(value) is dict else object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return fields if type(fields) is dict and type(value) is not ModuleType else {}
