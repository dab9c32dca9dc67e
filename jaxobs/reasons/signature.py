"""Signatures: what a compiled program was made for, as values that keep no array alive.

Taken on a cache miss only, next to a compile that costs a thousand times as much. Leaves are kept in the order in
which JAX flattens them; their paths are worked out only when two signatures differ.
"""

import bisect
import dataclasses
import functools
import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxobs.internals import Call, Held, flax_graphs
from jaxobs.reasons import described, options, statics
from jaxobs.reasons.statics import Static as Static
from jaxobs.reasons.statics import static as static
from jaxobs.reasons.texts import MOST_REPR as MOST_REPR
from jaxobs.reasons.texts import shortened as shortened

MOST_LEAVES = 4096
MOST_ALIKE = 8


@dataclass(frozen=True, slots=True)
class Leaf:
    """An array argument, as far as JAX's cache keys see it."""

    shape: tuple[Any, ...] | None
    """Sizes; None for what has no abstract value."""
    dtype: str
    weak_type: bool
    sharding: Any = None
    """A committed array's sharding; None for what JAX may place as it likes."""
    layout: str | None = None
    """Text of the layout; None for the usual one."""
    python: str | None = field(default=None, compare=False)
    """The type of a Python scalar; to JAX it is as good as a weakly typed array."""

    def __str__(self) -> str:
        sizes = "?" if self.shape is None else ",".join(map(str, self.shape))
        weak = "{weak_type=True}" if self.weak_type else ""
        return f"{self.dtype}[{sizes}]{weak}" + (f" (a Python {self.python})" if self.python else "")


@dataclass(frozen=True, slots=True, eq=False)
class Signature:
    """A call as JAX's caches distinguish it from others."""

    leaves: tuple[Leaf | Static, ...]
    tree: Any
    """JAX's tree definition of the arguments, the static ones as leaves, with hidden metadata."""
    options: tuple[tuple[str, str], ...] = ()
    """The options of `jax.jit` that are part of the key, as texts."""
    context: tuple[tuple[str, str], ...] = ()
    """Config values and context managers that are part of the key and not as usual, as texts."""
    generation: int = 0
    """How often JAX's caches had been emptied."""
    quotes: bool = True
    """True if its metadata may be quoted."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Signature):
            return NotImplemented
        mine, its = (self.leaves, self.options, self.context), (other.leaves, other.options, other.context)
        return mine == its and same_tree(self.tree, other.tree)

    def __hash__(self) -> int:
        return hash((self.leaves, self.options, self.context))


def equal(a: Any, b: Any) -> bool:
    """Equality that may run the user's `__eq__`: what raises there is a difference."""
    try:
        return a is b or bool(a == b)
    except Exception:
        return False


def same_tree(a: Any, b: Any) -> bool:
    """Returns whether JAX's caches take two tree definitions for one.

    Those of two dataclasses with equal fields compare equal, whatever their types, and differ in their hashes.
    """
    try:
        return a is b or bool(a == b and hash(a) == hash(b))
    except Exception:
        return False


def take(
    call: Call, *, static_values: bool = True, context: tuple[tuple[str, str], ...] = (), generation: int = 0
) -> Signature | None:
    """Returns the signature of a call; None where the arguments are out of sight."""
    if call.args is None:
        return None
    import jax

    leaves, tree = jax.tree_util.tree_flatten((call.args, dict(call.kwargs)))
    taken = tuple(_each_leaf(leaves, static_values, call.placed))
    if call.layouts:
        taken = tuple(_with_layouts(taken, call.layouts))
    tree = statics.hidden(tree, static_values)
    return Signature(taken, tree, options.taken(call.jit_info), context, generation, static_values)


def _each_leaf(values: list[Any], static_values: bool, placed: bool) -> Iterator[Leaf | Static]:
    import jax

    tracer, struct, wide = jax.core.Tracer, jax.ShapeDtypeStruct, bool(jax.config.jax_enable_x64)
    # JAX's arrays share their abstract values. These are known by id, which nothing else can have while `values` lives.
    alike: dict[tuple[int, Any], Leaf] = {}
    for value in values:
        if type(value) is Held:
            yield static(value.value, static_values)
            continue
        abstract = getattr(value, "aval", value)
        committed = not isinstance(value, tracer) and getattr(value, "committed", False)
        sharding = value.sharding if placed and (committed or isinstance(value, struct)) else None
        key = (id(abstract), sharding)
        leaf = alike.get(key)
        if leaf is None:
            leaf = alike[key] = _leaf(abstract, sharding, wide)
        yield leaf


def _with_layouts(leaves: tuple[Leaf | Static, ...], layouts: Mapping[int, str]) -> Iterator[Leaf | Static]:
    """JAX numbers the dynamic leaves only."""
    number = 0
    for leaf in leaves:
        if isinstance(leaf, Leaf):
            yield dataclasses.replace(leaf, layout=layouts[number]) if number in layouts else leaf
            number += 1
        else:
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

    if not isinstance(getattr(dtype, "kind", None), str):
        return _extended_name(dtype)
    if not wide and dtype.kind in "iufc":
        dtype = jax.dtypes.canonicalize_dtype(dtype)
    return str(dtype)


_extended: dict[str, list[Any]] = {}
"""Types of keys and the like by their text: JAX lets two that differ have one."""


def _extended_name(dtype: Any) -> str:
    """Returns the text of a type that NumPy does not have; a second one that looks the same is numbered."""
    text = str(dtype)
    known = _extended.setdefault(text, [])
    if dtype not in known and len(known) < MOST_ALIKE:
        known.append(dtype)
    number = known.index(dtype) if dtype in known else MOST_ALIKE
    return text if number == 0 else f"{text}#{number + 1}"


def _scalar_leaf(value: Any) -> Leaf:
    import jax

    try:
        abstract = jax.typeof(value) if hasattr(jax, "typeof") else jax.api_util.shaped_abstractify(value)
        python = type(value).__name__ if isinstance(value, bool | int | float | complex) else None
        return Leaf(tuple(abstract.shape), str(abstract.dtype), bool(abstract.weak_type), python=python)
    except Exception:  # a type of the user's that JAX flattens to itself; its name is all there is
        return Leaf(None, described.qualname(type(value)), False)


def parameter_names(fun: Callable[..., Any]) -> list[str]:
    """Returns the names of the positional parameters, a variadic one as `args[2]`; empty where Python cannot tell."""
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


def keys(tree: Any) -> list[Sequence[Any]]:
    """Returns the keys on the way to each leaf."""
    return list(keys_at(tree, range(tree.num_leaves)).values())


def keys_at(tree: Any, positions: Sequence[int]) -> dict[int, Sequence[Any]]:
    """Returns the keys on the way to the leaves of these numbers, which ascend: expensive only for those asked for."""
    found: dict[int, Sequence[Any]] = {}
    _descend(tree, positions, 0, (), found)
    return found


def _descend(
    tree: Any, positions: Sequence[int], first: int, above: tuple[Any, ...], found: dict[int, Sequence[Any]]
) -> None:
    node = tree.node_data()
    if node is None:
        if positions:
            found[first] = above
        return
    children = tree.children()
    named = child_keys(node[0], node[1], len(children))
    if named is None:  # a node of the user's or a library's: only JAX knows its keys
        below = _known_or_new_keys(tree)
        for position in positions:
            found[position] = (*above, *below[position - first])
        return
    start = 0
    for key, child in zip(named, children, strict=True):
        end = bisect.bisect_left(positions, first + child.num_leaves, start)
        if end > start:
            _descend(child, positions[start:end], first, (*above, key), found)
            if end == len(positions):
                return
        start, first = end, first + child.num_leaves


def child_keys(kind: type, data: Any, size: int) -> list[Any] | None:
    """Keys of a container's children, as JAX gives them; None for any other node."""
    from jax import tree_util

    if kind is dict and type(data) is list:
        return [tree_util.DictKey(key) for key in data]  # those that are objects of the program are hidden
    if kind in (list, tuple):
        return [tree_util.SequenceKey(number) for number in range(size)]
    if data is None and issubclass(kind, tuple) and len(getattr(kind, "_fields", ())) == size:
        return [tree_util.GetAttrKey(name) for name in kind._fields]  # type: ignore[attr-defined]
    return None


def _known_or_new_keys(tree: Any) -> list[Sequence[Any]]:
    try:
        return _known_keys(statics.hidden(tree))
    except (TypeError, ValueError):  # metadata of the user's that cannot be hashed, or compared with that of another
        return _keys(tree)


def _keys(tree: Any) -> list[Sequence[Any]]:
    from jax import tree_util

    tree = statics.restored(tree)
    numbered = tree_util.tree_unflatten(tree, list(range(tree.num_leaves)))
    found = [keys for keys, _ in tree_util.tree_flatten_with_path(numbered)[0]]
    return flax_graphs.named_keys(tree, found)


# For the function that compiles again and again; more would keep large trees.
_known_keys = functools.lru_cache(maxsize=2)(_keys)


def path(keys: Sequence[Any], parameters: list[str]) -> str:
    """Returns the argument, or a part of it, as the user wrote it; empty for all arguments together."""
    from jax import tree_util

    if len(keys) < 2:
        return ""
    in_args, first, *rest = keys
    if getattr(in_args, "idx", 0) == 0:
        number = getattr(first, "idx", 0)
        head = parameters[number] if number < len(parameters) else f"args[{number}]"
    else:
        head = str(getattr(first, "key", first))
    return head + str(tree_util.keystr(tuple(rest)))


def sequence_key(number: int) -> Any:
    """JAX's key on the way to an element of a list or tuple."""
    from jax import tree_util

    return tree_util.SequenceKey(number)
