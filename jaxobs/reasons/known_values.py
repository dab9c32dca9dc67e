"""Values that `literals.write` has written, read back with what a program has in memory.

A log is data: nothing is imported, and nothing called, by its word. It may name what the program's own modules hold
already and what is inert: real dataclasses, members of enumerations, data types, the types of pytree nodes, and of
functions those of `jax.nn`, `jax.lax` and `jax.numpy` that compute and the defaults of the program's own function.
"""

import dataclasses
import enum
import re
import sys
import types
from collections.abc import Iterable, Mapping
from typing import Any

from jaxobs.base.errors import JaxobsError
from jaxobs.reasons.literals import MOST_DEPTH
from jaxobs.reasons.naming import unwrapped

_PLAIN = (bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset, type(None))
_NUMERICS = ("jax.nn", "jax.lax", "jax.numpy")
_WITH_FILES = re.compile(r"load|save|.*file|from_dlpack|frombuffer|set_printoptions|printoptions")
_DTYPE = re.compile(r"[a-z][a-z0-9_]*")


class OpaqueValueError(JaxobsError, ValueError):
    """A value was not written down, or what was written cannot be read here."""


class Program:
    """Values that a program has and a log may name: its modules, `main` for `__main__`, and those of `fun`."""

    def __init__(
        self, modules: Iterable[types.ModuleType] = (), main: types.ModuleType | None = None, fun: Any = None
    ) -> None:
        inner = unwrapped(fun) if fun is not None else None
        own = sys.modules.get(str(getattr(inner, "__module__", None)))
        self._main = main or sys.modules.get("__main__")
        self._modules = [*modules, *(each for each in (main, own) if each is not None)]
        self._defaults = (
            *(getattr(inner, "__defaults__", None) or ()),
            *(getattr(inner, "__kwdefaults__", None) or {}).values(),
        )
        self._held: set[int] | None = None

    # ------------------------------------------------------------------------------------------------ values

    def read(self, written: Any, depth: int = 4 * MOST_DEPTH) -> Any:
        """Returns the value.

        Raises:
          OpaqueValueError: it, or a part of it, was not written down, is damaged, or is not known to the program.
        """
        if not isinstance(written, Mapping):
            if isinstance(written, list):
                raise OpaqueValueError(f"{written!r:.80} was written by another version of jaxobs")
            return written
        if depth < 0:
            raise OpaqueValueError("it is nested too deeply")
        try:
            return self._read(written, depth - 1)
        except (AttributeError, TypeError, ValueError) as error:
            if isinstance(error, OpaqueValueError):
                raise
            raise OpaqueValueError(f"it is damaged, or of another version of jaxobs ({error!r:.120})") from None

    def _read(self, written: Mapping[str, Any], depth: int) -> Any:
        if "opaque" in written:
            raise OpaqueValueError(
                f"{written['opaque']!s:.200} is not recorded: it is not a plain value, and no module has it"
            )
        if "dict" in written:
            return {self.read(key, depth): self.read(value, depth) for key, value in written["dict"]}
        if "dtype" in written:
            return dtype(written["dtype"])
        if "import" in written:
            return self.named(written["import"])
        if "dataclass" in written:
            return self._dataclass(written["dataclass"], written["fields"], depth)
        for kind in (tuple, list, set, frozenset):
            if kind.__name__ in written:
                return kind(self.read(each, depth) for each in written[kind.__name__])
        raise OpaqueValueError(f"{written!r:.80} was written by another version of jaxobs")

    def _dataclass(self, path: Any, written: Mapping[str, Any], depth: int) -> Any:
        kind, held = self._found(path)
        if not (isinstance(kind, type) and "__dataclass_fields__" in vars(kind)):
            raise OpaqueValueError(f"`{path!s:.120}` is not a dataclass")
        if not held:
            raise _foreign(path)
        names = {each.name for each in dataclasses.fields(kind) if each.init}
        if names != set(written):
            raise OpaqueValueError(f"the dataclass `{path}` has different fields from those in the log")
        values = {name: self.read(value, depth) for name, value in written.items()}
        try:
            return kind(**values)
        except Exception as error:
            raise OpaqueValueError(f"`{path}` cannot be recreated: {type(error).__name__}: {error!s:.120}") from None

    # ------------------------------------------------------------------------------------------------- names

    def named(self, path: Any) -> Any:
        """Returns the value `module:qualname`, if the program holds it; raises `OpaqueValueError` otherwise."""
        value, held = self._found(path)
        if isinstance(value, enum.Enum):
            return value
        if isinstance(value, type):
            if value in _PLAIN or _is_number(value) or (held and self._is_of_program(value)):
                return value
        elif any(value is each for each in self._defaults) or _computes(value):
            return value
        elif held and not callable(value) and type(value).__module__ == str(path).partition(":")[0]:
            return value  # a mark like `MISSING`
        raise _foreign(path)

    def node(self, path: Any) -> type:
        """Returns the type of a pytree's node; raises `OpaqueValueError` if no imported module has it."""
        kind, _ = self._found(path)
        if not isinstance(kind, type):
            raise OpaqueValueError(f"`{path!s:.120}` is not a type")
        return kind

    def _found(self, path: Any) -> tuple[Any, bool]:
        """Returns the value of that name in memory, and whether the program holds it. No code runs to find it."""
        name, _, qualname = str(path).partition(":")
        module = self._main if name == "__main__" else sys.modules.get(name)
        missing = OpaqueValueError(f"`{path!s:.120}` does not exist: no imported module has it")
        if not isinstance(module, types.ModuleType):
            raise missing
        found: Any = module
        root: Any = None
        for part in qualname.split("."):
            space = _namespace(found)
            if part not in space:
                raise missing
            found = space[part]
            root = found if root is None else root
        return found, module in self._modules or id(root) in self._ids()

    def _ids(self) -> set[int]:
        """Returns the ids of the program's modules hold, and of the modules and the homes of the types among that."""
        if self._held is None:
            own = [value for module in self._modules for value in list(vars(module).values())]
            homes = {id(each): each for each in own if isinstance(each, types.ModuleType)}
            for value in own:
                home = sys.modules.get(value.__module__) if isinstance(value, type) else None
                if home is not None:
                    homes[id(home)] = home
            self._held = {id(each) for each in own}
            self._held.update(id(value) for home in homes.values() for value in list(vars(home).values()))
        return self._held

    def _is_of_program(self, kind: type) -> bool:
        """Returns whether a type holds data, or is the program's own."""
        if "__dataclass_fields__" in vars(kind) or issubclass(kind, enum.Enum):
            return True
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            return True
        return any(kind.__module__ == each.__name__ for each in self._modules)


def _foreign(path: Any) -> OpaqueValueError:
    return OpaqueValueError(
        f"`{path!s:.120}` cannot be named in a log: it is not a data type, dataclass or enumeration that the program "
        "holds"
    )


def _namespace(holder: Any) -> Mapping[str, Any]:
    """Returns the names in a module or a class, without running a `__getattr__` or a descriptor of theirs."""
    if isinstance(holder, types.ModuleType):
        return vars(holder)
    if not isinstance(holder, type):
        return {}
    members = vars(holder).get("_member_map_") if issubclass(holder, enum.Enum) else None
    return members if isinstance(members, dict) else vars(holder)


def _is_number(kind: type) -> bool:
    """Returns whether a type is a data type of NumPy's or JAX's: `np.float32`, `jnp.bfloat16`."""
    numpy, jax = sys.modules.get("numpy"), sys.modules.get("jax.numpy")
    if numpy is not None and issubclass(kind, numpy.generic):
        return True
    return jax is not None and any(kind is each for each in vars(jax).values()) and hasattr(kind, "dtype")


def _computes(value: Any) -> bool:
    """Returns whether a value is a function of JAX's that computes, and touches nothing else."""
    return any(
        value is each and callable(value) and not _WITH_FILES.fullmatch(name)
        for module in _NUMERICS
        for name, each in vars(sys.modules.get(module, types)).items()
        if module in sys.modules
    )


def dtype(name: Any) -> Any:
    """Returns the data type of that name, of NumPy or `ml_dtypes`; raises `OpaqueValueError` otherwise."""
    import ml_dtypes  # comes with JAX; NumPy knows its types by name once it is there
    import numpy as np

    if isinstance(name, str) and _DTYPE.fullmatch(name):
        kind = vars(ml_dtypes).get(name, name)
        try:
            if isinstance(kind, str) or issubclass(kind, np.generic):
                found = np.dtype(kind)
                if found.kind not in "OSUMm" and found.itemsize:
                    return found
        except TypeError:
            pass
    raise OpaqueValueError(f"there is no data type `{name!s:.80}` here")
