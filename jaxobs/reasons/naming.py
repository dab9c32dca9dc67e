"""Names of functions for people, and what stays the same when a function object is created again."""

import functools
import inspect
import os
import types
from collections.abc import Hashable
from typing import Any

from jaxobs import internals


def identity(fun: Any, name: str) -> Hashable:
    """Returns what is equal when a function object is created again: its code, or a primitive and its parameters."""
    if is_primitive(fun):
        return _primitive_identity(fun, name)
    if (program := internals.exported(fun)) is not None:
        return (program.fun_name, str(program.in_avals))
    code = getattr(unwrapped(fun), "__code__", None)
    return code if isinstance(code, types.CodeType) else name


def is_primitive(fun: Any) -> bool:
    """Returns whether JAX jits the function to run one operation by itself."""
    return bool(getattr(fun, "_apply_primitive", False))


def is_control_flow(fun: Any) -> bool:
    """Returns whether the function runs one operation that was given functions: `lax.scan`, `lax.cond`."""
    return is_primitive(fun) and bool(_bodies(_params(fun)))


def _params(fun: Any) -> dict[str, Any]:
    try:
        found: dict[str, Any] = inspect.getclosurevars(fun).nonlocals.get("params", {})
    except (TypeError, ValueError):
        return {}
    return found


def _bodies(params: dict[str, Any]) -> list[str]:
    return [source for value in params.values() for source in _sources(value)]


def _primitive_identity(fun: Any, name: str) -> Hashable:
    try:
        params = _params(fun)
        bodies = _bodies(params)
        if bodies:  # what the parameters say besides follows from the arguments
            return (name, *bodies)
        return (name, tuple(sorted((key, str(value)[:256]) for key, value in params.items())))
    except Exception:
        return name


def _sources(value: Any) -> list[str]:
    """Returns the places of the functions that a parameter of a primitive was traced from."""
    found = []
    for function in value if isinstance(value, tuple | list) else (value,):
        debug_info = getattr(function, "debug_info", None) or getattr(
            getattr(function, "jaxpr", None), "debug_info", None
        )
        source = getattr(debug_info, "func_src_info", None)
        if isinstance(source, str):
            found.append(source)
    return found


def unwrapped(fun: Any) -> Any:
    """Returns the user's function under partials, bound methods and wrappers that say what they wrap."""
    for _ in range(32):
        if isinstance(fun, functools.partial):
            fun = fun.func
        elif isinstance(fun, types.MethodType) and internals.exported(fun) is None:
            inner = internals.user_function(fun)
            fun = fun.__func__ if inner is fun else inner
        elif getattr(fun, "__wrapped__", None) is not None:
            fun = fun.__wrapped__
        else:
            break
    return internals.user_function(fun)


def function_name(fun: Any) -> str | None:
    """`module.qualname` of the user's function; None where it has none."""
    fun = unwrapped(fun)
    if (program := internals.exported(fun)) is not None:
        return str(program.fun_name)
    qualname = getattr(fun, "__qualname__", None)
    if not isinstance(qualname, str):
        fun = type(fun)
        qualname = fun.__qualname__
    module = getattr(fun, "__module__", None)
    return f"{module}.{qualname}" if isinstance(module, str) and module else qualname


def made_at(fun: Any) -> str | None:
    """`file:line` of the code that makes it; None where it has none."""
    code = None if internals.exported(fun) is not None else getattr(unwrapped(fun), "__code__", None)
    return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}" if isinstance(code, types.CodeType) else None


def owner(fun: Any) -> str | None:
    """Returns the installed library of a function; None for the user's, and for an operation of JAX's."""
    code = getattr(unwrapped(fun), "__code__", None)
    if not isinstance(code, types.CodeType) or internals.source_files.is_jax(code.co_filename):
        return None
    path = internals.source_files.in_library(code.co_filename)
    return None if path is None else path.split(os.sep)[0]
