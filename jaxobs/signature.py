"""What a compiled program was made for: the call's signature, as values that keep no array alive.

Taken on a cache miss only, beside a compile that costs a thousand times as much. Leaves are kept in the order in
which JAX flattens them; their paths are worked out only when two signatures differ.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MOST_REPR = 120
MOST_LEAVES = 4096


@dataclass(frozen=True, slots=True)
class Leaf:
    """What JAX's cache keys see of one array argument."""

    shape: tuple[Any, ...] | None
    """Sizes; None for what has no abstract value."""
    dtype: str
    weak_type: bool
    sharding: Any = None
    """A committed array's sharding; None for what JAX may place as it likes."""

    def __str__(self) -> str:
        sizes = "?" if self.shape is None else ",".join(map(str, self.shape))
        return f"{self.dtype}[{sizes}]" + ("{weak_type=True}" if self.weak_type else "")


@dataclass(frozen=True, slots=True)
class Static:
    """A static argument: its bounded repr, type and hash stand for it; the object itself is not kept."""

    path: str
    type: str
    text: str
    hash: int


@dataclass(frozen=True, slots=True)
class Signature:
    """One call as JAX's caches tell it from others."""

    leaves: tuple[Leaf, ...]
    tree: Any
    """JAX's tree definition of the dynamic arguments; None where they were out of sight."""
    statics: tuple[Static, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    """The options of `jax.jit` that are part of the key, as texts."""
    context: tuple[tuple[str, str], ...] = ()
    """Config values and context managers that are part of the key and not as usual, as texts."""
    generation: int = field(default=0, compare=False)
    """How often JAX's caches had been emptied."""


_OPTIONS = (
    "donate_argnums", "donate_argnames", "static_argnums", "static_argnames", "in_shardings_leaves",
    "out_shardings_leaves", "in_layouts_leaves", "out_layouts_leaves", "device", "backend", "keep_unused",
    "inline", "compiler_options_kvs",
)  # fmt: skip


def take(
    fun: Any,
    jit_info: Any,
    args: tuple[Any, ...] | None,
    kwargs: Mapping[str, Any] | None,
    *,
    static_values: bool = True,
    context: tuple[tuple[str, str], ...] = (),
    generation: int = 0,
) -> Signature | None:
    """The signature of calling `fun(*args, **kwargs)`; None where the arguments are out of sight."""
    if args is None:
        return None
    import jax

    dynamic_args, dynamic_kwargs, statics = _split(fun, jit_info, args, kwargs or {}, static_values)
    leaves, tree = jax.tree_util.tree_flatten((dynamic_args, dynamic_kwargs))
    taken = tuple(_each_leaf(leaves))
    return Signature(taken, tree, statics, _options(jit_info), context, generation)


def _each_leaf(values: list[Any]) -> Iterator[Leaf]:
    import jax

    tracer, wide = jax.core.Tracer, bool(jax.config.jax_enable_x64)
    # JAX's arrays share their abstract values. These are known by id, which nothing else can have while `values` lives.
    alike: dict[tuple[int, Any], Leaf] = {}
    for value in values:
        abstract = getattr(value, "aval", value)
        committed = not isinstance(value, tracer) and getattr(value, "committed", False)
        sharding = value.sharding if committed else None
        key = (id(abstract), sharding)
        leaf = alike.get(key)
        if leaf is None:
            leaf = alike[key] = _leaf(abstract, sharding, wide)
        yield leaf


_leaves: dict[tuple[Any, ...], Leaf] = {}
"""Leaves made before. Equal ones are one object, which makes signatures small, and quick to compare."""


def _leaf(abstract: Any, sharding: Any, wide: bool) -> Leaf:
    try:
        shape, dtype = abstract.shape, abstract.dtype
    except AttributeError:
        return _scalar_leaf(abstract)
    key = (shape, dtype, getattr(abstract, "weak_type", False), sharding, wide)
    try:
        return _leaves[key]
    except KeyError:
        leaf = Leaf(shape, _dtype_name(dtype, wide), key[2], sharding)
    except TypeError:  # a type of the user's whose shape cannot be hashed
        return Leaf(shape, _dtype_name(dtype, wide), key[2], sharding)
    if len(_leaves) >= MOST_LEAVES:
        _leaves.clear()
    _leaves[key] = leaf
    return leaf


def _dtype_name(dtype: Any, wide: bool) -> str:
    """As JAX canonicalises it: NumPy's float64 is float32 to a program unless 64 bits are enabled (`wide`)."""
    import jax

    if not wide and isinstance(getattr(dtype, "kind", None), str) and dtype.kind in "iufc":
        dtype = jax.dtypes.canonicalize_dtype(dtype)
    return str(dtype)


def _scalar_leaf(value: Any) -> Leaf:
    import jax

    try:
        abstract = jax.typeof(value) if hasattr(jax, "typeof") else jax.api_util.shaped_abstractify(value)
        return Leaf(tuple(abstract.shape), str(abstract.dtype), bool(abstract.weak_type))
    except Exception:  # a type of the user's that JAX flattens to itself; its name is all there is
        return Leaf(None, type(value).__qualname__, False)


def _split(
    fun: Any, jit_info: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], static_values: bool
) -> tuple[tuple[Any, ...], dict[str, Any], tuple[Static, ...]]:
    """Dynamic positional and keyword arguments, and the static ones."""
    numbers = {
        n % len(args) if args else n
        for n in getattr(jit_info, "static_argnums", None) or ()
        if -len(args) <= n < len(args)
    }
    names = set(getattr(jit_info, "static_argnames", None) or ())
    if not numbers and not names:
        return args, dict(kwargs), ()
    parameters = parameter_names(fun)
    statics = []
    for number in sorted(numbers):
        path = parameters[number] if number < len(parameters) else f"args[{number}]"
        statics.append(_static(path, args[number], static_values))
    for name in sorted(names & set(kwargs)):
        statics.append(_static(name, kwargs[name], static_values))
    dynamic = tuple(None if n in numbers else arg for n, arg in enumerate(args))
    return dynamic, {name: kwargs[name] for name in kwargs if name not in names}, tuple(statics)


def _static(path: str, value: Any, static_values: bool) -> Static:
    try:
        hashed = hash(value)
    except Exception:
        hashed = id(type(value))
    return Static(
        path,
        type(value).__qualname__,
        bounded_repr(value) if static_values else type(value).__qualname__,
        hashed,
    )


def _options(jit_info: Any) -> tuple[tuple[str, str], ...]:
    if jit_info is None:
        return ()
    return tuple([(name, _option_text(getattr(jit_info, name, None))) for name in _OPTIONS])


def _option_text(value: Any) -> str:
    try:
        return _known_option_text(value)
    except TypeError:  # it cannot be hashed
        return shortened(str(value))


@functools.lru_cache(maxsize=256, typed=True)
def _known_option_text(value: Any) -> str:
    """The text of an option, one object for equal ones; a long one ends in a hash of the whole."""
    text = str(value)
    if len(text) <= MOST_REPR:
        return text
    return f"{shortened(text)} ({hashlib.sha256(text.encode()).hexdigest()[:12]})"


def bounded_repr(value: Any) -> str:
    """`repr` on one line, cut to 120 characters; the type's name where it raises."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__qualname__}>"
    return shortened(text)


def shortened(text: str) -> str:
    """`text` on one line, cut to 120 characters."""
    text = " ".join(text.split())
    return text if len(text) <= MOST_REPR else text[: MOST_REPR - 1] + "…"


def parameter_names(fun: Callable[..., Any]) -> list[str]:
    """Names of the positional parameters, a variadic one as `args[2]`; empty where Python cannot tell."""
    if isinstance(fun, types.FunctionType) and not vars(fun) and not fun.__code__.co_flags & inspect.CO_VARARGS:
        return list(fun.__code__.co_varnames[: fun.__code__.co_argcount])
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return []
    names: list[str] = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}[{n}]" for n in range(64)]
            break
        if parameter.kind is not parameter.KEYWORD_ONLY and parameter.kind is not parameter.VAR_KEYWORD:
            names.append(parameter.name)
    return names


def paths(fun: Callable[..., Any], tree: Any, positions: Sequence[int] | None = None) -> list[str]:
    """Paths of the leaves of a `Signature.tree`, as the user wrote the argument: `batch['image']`.

    Args:
      positions: of the leaves that are asked for; None for all.
    """
    try:
        found = _known_keys(tree)
    except TypeError:  # metadata of the user's that cannot be hashed
        found = _keys(tree)
    parameters = parameter_names(fun)
    return [_path(found[number], parameters) for number in (range(len(found)) if positions is None else positions)]


def _keys(tree: Any) -> list[Sequence[Any]]:
    """The keys on the way to each leaf."""
    from jax import tree_util

    numbered = tree_util.tree_unflatten(tree, list(range(tree.num_leaves)))
    return [keys for keys, _ in tree_util.tree_flatten_with_path(numbered)[0]]


# For the function that compiles again and again; more would keep large trees.
_known_keys = functools.lru_cache(maxsize=2)(_keys)


def _path(keys: Sequence[Any], parameters: list[str]) -> str:
    from jax import tree_util

    in_args, first, *rest = keys
    if getattr(in_args, "idx", 0) == 0:
        number = getattr(first, "idx", 0)
        head = parameters[number] if number < len(parameters) else f"args[{number}]"
    else:
        head = str(getattr(first, "key", first))
    return head + str(tree_util.keystr(tuple(rest)))
