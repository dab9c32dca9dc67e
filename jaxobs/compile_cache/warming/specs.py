"""Arguments in short for a person, and as arrays for who takes no `jax.ShapeDtypeStruct`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MOST_TOLD = 3
MOST_TEXT = 200


def describe(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """The arguments in short: `(TrainState of 14 arrays, {float32[64,64], int32[64]}, train=True)`."""
    parts = [_told(each) for each in args] + [f"{name}={_told(each)}" for name, each in kwargs.items()]
    text = f"({', '.join(parts)})"
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 2]}…)"


def _told(argument: Any) -> str:
    from jax import tree_util

    leaves, tree = tree_util.tree_flatten(argument)
    if tree_util.treedef_is_leaf(tree):
        return _leaf(argument)
    if len(leaves) <= MOST_TOLD:
        return f"{{{', '.join(map(_leaf, leaves))}}}"
    return f"{type(argument).__name__} of {len(leaves)} arrays"


def _leaf(value: Any) -> str:
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(shape, tuple) and dtype is not None:
        return f"{dtype}[{','.join(map(str, shape))}]"
    # Of others the type: what they hold may be large, or nobody's business.
    return repr(value) if isinstance(value, bool | int) or value is None else type(value).__name__


def arrays(fun: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments as `fun.lower` takes them: for Equinox, which takes anything but arrays as static, as zeros."""
    if not type(fun).__module__.startswith("equinox."):
        return tuple(args), dict(kwargs)
    from jax import tree_util

    made: tuple[tuple[Any, ...], dict[str, Any]] = tree_util.tree_map(_zeros, (tuple(args), dict(kwargs)))
    return made


def _zeros(spec: Any) -> Any:
    import jax
    import numpy as np

    if not isinstance(spec, jax.ShapeDtypeStruct):
        return spec
    if jax.dtypes.issubdtype(spec.dtype, jax.dtypes.prng_key):
        data = jax.eval_shape(jax.random.key_data, spec)
        name = jax.eval_shape(lambda key: key, spec).dtype
        return jax.random.wrap_key_data(np.zeros(data.shape, data.dtype), impl=name._impl.name)
    # Of arrays with a weak type only scalars can be made in public.
    weak = spec.weak_type and spec.shape == ()
    zeros = jax.numpy.asarray(np.zeros((), spec.dtype).item() if weak else np.zeros(spec.shape, spec.dtype))
    return zeros if spec.sharding is None else jax.device_put(zeros, spec.sharding)
