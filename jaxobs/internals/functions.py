"""The user's function, inside what JAX or a library made around it."""

from __future__ import annotations

import functools
import types
from typing import Any

from jaxobs.internals.source_files import is_jax


def user_function(fun: Any) -> Any:
    """The user's function inside one that JAX made around it.

    `pmap` jits a closure over it since 0.10, and in 0.8 and 0.9 a bound method of an object that has it as `f`.
    """
    closure, code = getattr(fun, "__closure__", None), getattr(fun, "__code__", None)
    if code is None or not is_jax(code.co_filename):
        return fun
    if hasattr(fun, "__self__"):
        return getattr(fun.__self__, "f", fun)
    for name, cell in zip(code.co_freevars, closure or (), strict=False):
        if name == "fun":
            return getattr(cell.cell_contents, "f", fun)
    return fun


def function_in_statics(fun: Any, jit_info: Any, args: tuple[Any, ...] | None) -> Any:
    """The user's function where a library jits one wrapper for all and passes the function as a static argument.

    Equinox does: the wrapper has the function's `__qualname__`, and the function is in the static argument.
    """
    code = getattr(fun, "__code__", None)
    if args is None or code is None or code.co_name == getattr(fun, "__name__", None):
        return fun
    names = getattr(jit_info, "static_argnames", None) or ()
    numbers = set(getattr(jit_info, "static_argnums", None) or ())
    numbers |= {n for n, name in enumerate(code.co_varnames[: code.co_argcount]) if name in names}
    for number in numbers:
        found = _function_called(fun.__qualname__, args[number], 5) if number < len(args) else None
        if found is not None:
            return found
    return fun


def _function_called(qualname: str, value: Any, depth: int) -> Any:
    if isinstance(value, tuple) and depth:
        found = (_function_called(qualname, each, depth - 1) for each in value[:16])
        return next((each for each in found if each is not None), None)
    return value if isinstance(value, types.FunctionType) and value.__qualname__ == qualname else None


def is_jax_function(fun: Any) -> bool:
    """Whether `fun` is JAX's own (`jnp.mean`, an eager primitive), no function of the user's."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    module = getattr(fun, "__module__", None)
    if not isinstance(module, str) or module.split(".")[0] != "jax":
        return False
    return getattr(fun, "__wrapped__", None) is None
