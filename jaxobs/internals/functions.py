"""The user's function, inside what JAX or a library made around it."""

from __future__ import annotations

import functools
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


def is_jax_function(fun: Any) -> bool:
    """Returns whether `fun` is JAX's own (`jnp.mean`, an eager primitive), no function of the user's."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    module = getattr(fun, "__module__", None)
    if not isinstance(module, str) or module.split(".")[0] != "jax":
        return False
    return getattr(fun, "__wrapped__", None) is None
