"""The call as the user wrote it, inside what JAX or a library made of it.

- Static arguments are in their places, each held so that JAX takes it for one leaf.
- Equinox jits one wrapper for all functions of a name, and takes the arguments apart into arrays and the rest: see
  `_preprocess` in equinox/_jit.py.
- `pmap` has jitted a closure over flattened arguments since JAX 0.8: see jax/_src/pmap.py.
- `nnx.jit` jits an object that calls the function, whose `f` it is: see `JitFn` in flax/nnx/transforms/compilation.py.
"""

import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxobs.internals.frames import Miss


@dataclass(frozen=True, slots=True)
class Held:
    """A static argument in its place among the dynamic ones. Live: read it now, keep it not."""

    value: Any


@dataclass(slots=True)
class Call:
    """A function and its arguments. Live objects: read them now, keep none."""

    fun: Any
    """The user's function."""
    key: Any
    """The object by which JAX, or the library, knows the function again."""
    args: tuple[Any, ...] | None
    """None where the arguments are out of sight."""
    kwargs: Mapping[str, Any]
    jit_info: Any = None
    """The options of `jax.jit`; None where they are not the user's."""
    placed: bool = True
    """Whether the places of its arguments are part of the key."""
    layouts: Mapping[int, str] | None = None
    """Texts of the layouts that are not the usual, by number of the leaf."""


def called(miss: Miss) -> Call:
    """The user's call behind a miss."""
    if miss.args is None:
        return Call(miss.fun, miss.fun, None, {})
    kwargs = miss.kwargs or {}
    if miss.mapped is not None:
        numbers = set(miss.mapped)
        return Call(miss.fun, miss.fun, _holding(miss.args, numbers), kwargs, placed=miss.placed, layouts=miss.layouts)
    if miss.transform is None and _is_equinox(miss.fun, miss.args):
        return _equinox_call(miss)
    info = miss.jit_info
    numbers = set(getattr(info, "static_argnums", None) or ())
    names = set(getattr(info, "static_argnames", None) or ())
    if numbers or names:
        kwargs = {name: Held(value) if name in names else value for name, value in kwargs.items()}
    return Call(miss.fun, miss.fun, _holding(miss.args, numbers), kwargs, info, layouts=miss.layouts)


def _holding(args: tuple[Any, ...], numbers: set[int]) -> tuple[Any, ...]:
    if not numbers:
        return args
    places = {number % len(args) for number in numbers if -len(args) <= number < len(args)}
    return tuple(Held(arg) if place in places else arg for place, arg in enumerate(args))


def _is_equinox(fun: Any, args: tuple[Any, ...]) -> bool:
    code = getattr(fun, "__code__", None)
    if not isinstance(code, types.CodeType) or len(args) != 3:
        return False
    return code.co_varnames[:3] == ("dynamic_donate", "dynamic_nodonate", "static") and len(args[2]) == 3


def _equinox_call(miss: Miss) -> Call:
    assert miss.args is not None
    donated, kept, (static_fun, static_first, static_rest) = miss.args
    dynamic = {**donated, **kept}
    fun = _combined(dynamic["fun"], static_fun, hold=False)
    first = _combined(dynamic["first"], static_first)
    rest, kwargs = _combined(dynamic["rest"], static_rest)
    args = (first, *rest)[:-1]  # Equinox appends a None, so that there is a first one.
    if isinstance(fun, types.FunctionType | types.MethodType) or not callable(fun):
        return Call(fun, fun, args, kwargs, miss.jit_info)
    # A module that is called: its arrays and its static parts are an argument, too.
    whole = _combined(dynamic["fun"], static_fun)
    call = type(fun).__call__
    return Call(call, call, (whole, *args), kwargs, miss.jit_info)


def _combined(dynamic: Any, static: Any, hold: bool = True) -> Any:
    """Arguments that Equinox took apart: arrays where they were, and static values in the other places."""
    from jax import tree_util

    static_leaves, tree = static
    leaves = [
        array if rest is None else (Held(rest) if hold else rest)
        for array, rest in zip(dynamic, static_leaves, strict=True)
    ]
    return tree_util.tree_unflatten(tree, leaves)
