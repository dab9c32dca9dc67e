"""Which earlier signature a call is told against: the nearest, not the latest, in every way of compiling.

Each case compiles two signatures, the nearer one first; then a call that differs from the nearer one in one thing.
Nothing but that thing may be told.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxobs
from benchmarks.corpus.judging import case
from benchmarks.corpus.programs.library import HAS_EQUINOX, HAS_FLAX, eqx_case, nnx_case
from benchmarks.corpus.programs.plain import array, both

if HAS_FLAX:
    from flax import nnx

    from benchmarks.corpus.programs.library import Net

if HAS_EQUINOX:
    import equinox as eqx

    from benchmarks.corpus.programs.library import Affine


@functools.partial(jax.tree_util.register_dataclass, data_fields=["weights"], meta_fields=["train", "scale", "name"])
@dataclasses.dataclass
class Model:
    """Arrays, and what stands beside them."""

    weights: Any
    train: bool = True
    scale: int = 1
    name: str = "m"


# ------------------------------------------------------------------------------------------------ plain


@both("structure", "model", says="(False, 1, 'm')", only=True)
def near_by_metadata(jit: Any) -> Iterator[None]:
    """A node of the user's; the earlier call with other arrays is farther."""
    f = jit(lambda model, x: model.weights * x)
    f(Model(array()), array(4))
    f(Model(array()), array(5))
    model, x = Model(array(), train=False), array(4)
    yield
    f(model, x)


@both("structure", "model.weights['b']", only=True)
def near_by_a_key(jit: Any) -> Iterator[None]:
    f = jit(lambda model, x: sum(model.weights.values()) * x)
    f(Model({"a": array(4), "c": array(4)}), array(4))
    f(Model({"a": array(1), "c": array(4)}), array(1))
    model, x = Model({"a": array(4), "b": array(4), "c": array(4)}), array(4)
    yield
    f(model, x)


@both("structure", "model", says="3", only=True)
def near_by_one_of_two_values(jit: Any) -> Iterator[None]:
    """Nearer is what differs in one part of two."""
    f = jit(lambda model, other: model.weights * other.weights * model.scale)
    x = array(2)
    f(Model(x, scale=2), Model(x, scale=2))
    f(Model(x, scale=4), Model(x, scale=4))
    model, other = Model(x, scale=3), Model(x, scale=2)
    yield
    f(model, other)


@both("structure", "mask", only=True)
def near_by_a_keyword(jit: Any) -> Iterator[None]:
    """A keyword argument that the earlier calls lack."""
    f = jit(lambda *, x, mask=None: x if mask is None else x * mask)
    f(x=array(4))
    f(x=array(5))
    x = array(4)
    yield
    f(x=x, mask=x)


@both("structure", "mask", says="None", only=True)
def near_by_what_was_none(jit: Any) -> Iterator[None]:
    """None became an array."""
    f = jit(lambda x, mask: x if mask is None else x * mask)
    f(array(4), None)
    f(array(5), None)
    x = array(4)
    yield
    f(x, x)


@both("static_argument", "mode", only=True)
def near_by_a_static_keyword(jit: Any) -> Iterator[None]:
    """By name."""
    f = jit(lambda x, mode: x * len(mode), static_argnames="mode")
    f(array(4), mode="a")
    f(array(5), mode="a")
    x = array(4)
    yield
    f(x, mode="bb")


@both("static_argument", "mode", only=True)
def near_by_a_static_argument_that_was_left_out(jit: Any) -> Iterator[None]:
    f = jit(lambda x, mode="a": x * len(mode), static_argnames="mode")
    f(array(4))
    f(array(5))
    x = array(4)
    yield
    f(x, mode="bb")


@both("context", "jax_default_matmul_precision", only=True)
def near_by_the_context(jit: Any) -> Iterator[None]:
    """A context manager around a shape that was compiled before."""
    f = jit(lambda x: x @ x)
    f(array(4, 4))
    f(array(5, 5))
    x = array(4, 4)
    yield
    with jax.default_matmul_precision("float32"):
        f(x)


@both("weak_type", "x", only=True)
def near_by_a_type(jit: Any) -> Iterator[None]:
    """A Python scalar."""
    f = jit(lambda x, y: x * y)
    f(array(), array(4))
    f(array(), array(5))
    y = array(4)
    yield
    f(1.0, y)


@both("shape", "x[0]", only=True)
def near_by_one_leaf_of_many_structures(jit: Any) -> Iterator[None]:
    """The nearer signature is the oldest of a dozen structures."""
    f = jit(lambda x: sum(each.sum() for each in x))
    for number in range(1, 12):
        f([array(3)] * number)
    x = [array(5)]
    yield
    f(x)


# ------------------------------------------------------------------------------------------------ Flax NNX


@nnx_case("structure", "model.dropout.deterministic", says="False -> True", only=True)
def nnx_near_by_the_mode() -> Iterator[None]:
    """`model.eval()` for a batch that was trained on before."""
    model = Net()
    f = nnx.jit(lambda model, x: model(x).sum())
    f(model, array(128, 4))
    f(model, array(92, 4))
    model.eval()
    x = array(128, 4)
    yield
    f(model, x)


@nnx_case("shape", "x", says=("float32[128,4]", "float32[92,4]"), only=True)
def nnx_near_by_the_batch() -> Iterator[None]:
    """A batch that was trained on before, now in the mode that was compiled last."""
    model = Net()
    f = nnx.jit(lambda model, x: model(x).sum())
    f(model, array(128, 4))
    f(model, array(92, 4))
    model.eval()
    f(model, array(128, 4))
    x = array(92, 4)
    yield
    f(model, x)


@nnx_case("structure", "model.dropout.deterministic", only=True)
def nnx_near_by_the_mode_under_grad() -> Iterator[None]:
    """A step with a gradient, the batch by keyword."""
    model = Net()
    f = nnx.jit(lambda model, *, batch: nnx.grad(lambda model: model(batch["x"]).sum())(model))
    f(model, batch={"x": array(8, 4)})
    f(model, batch={"x": array(9, 4)})
    model.eval()
    batch = {"x": array(8, 4)}
    yield
    f(model, batch=batch)


@nnx_case("static_argument", "n", only=True)
def nnx_near_by_a_static_value() -> Iterator[None]:
    """`static_argnames`."""
    model = Net()
    f = nnx.jit(lambda model, x, n: model(x).sum() * n, static_argnames="n")
    f(model, array(8, 4), n=2)
    f(model, array(9, 4), n=2)
    x = array(8, 4)
    yield
    f(model, x, n=3)


@nnx_case("structure", "model.linear.bias", only=True)
def nnx_near_by_a_parameter() -> Iterator[None]:
    """An attribute that the earlier model lacks: the arrays after it have other numbers."""

    def model(bias: bool) -> Any:
        found = Net()
        if not bias:
            found.linear.bias = nnx.Param(jnp.zeros(()))
            del found.linear.bias
        return found

    f = nnx.jit(lambda model, x: (x @ model.linear.kernel[...]).sum())
    f(model(True), array(8, 4))
    f(model(True), array(9, 4))
    other, x = model(False), array(8, 4)
    yield
    f(other, x)


@nnx_case("structure", "model.linear.kernel.axes", says="'a'", only=True)
def nnx_near_by_what_a_variable_says() -> Iterator[None]:
    """Metadata of a variable."""

    def model(axes: str) -> Any:
        found = Net()
        found.linear.kernel = nnx.Param(found.linear.kernel[...], axes=axes)
        return found

    f = nnx.jit(lambda model, x: model(x).sum())
    f(model("a"), array(8, 4))
    f(model("a"), array(9, 4))
    other, x = model("b"), array(8, 4)
    yield
    f(other, x)


@case("nnx.pmap", "structure", "model.dropout.deterministic", devices=2, only=True, needs=lambda: HAS_FLAX)
def nnx_pmap_near_by_the_mode() -> Iterator[None]:
    """Over devices."""
    model = Net()
    f = nnx.pmap(lambda model, x: model(x).sum(), in_axes=(None, 0))
    f(model, array(2, 8, 4))
    f(model, array(2, 8, 4))  # the model has come back from both devices
    f(model, array(2, 9, 4))
    model.eval()
    x = array(2, 8, 4)
    yield
    f(model, x)


@case("nnx.vmap", "structure", "model.dropout.deterministic", only=True, needs=lambda: HAS_FLAX)
def nnx_vmap_near_by_the_mode() -> Iterator[None]:
    """Vectorised inside a jitted function."""
    model = Net()
    f = nnx.jit(lambda model, x: nnx.vmap(lambda model, x: model.linear(x), in_axes=(None, 0))(model, x).sum())
    f(model, array(8, 4))
    f(model, array(9, 4))
    model.eval()
    x = array(8, 4)
    yield
    f(model, x)


@case("instrument", "structure", "model.dropout.deterministic", only=True, needs=lambda: HAS_FLAX)
def nnx_instrumented_near_by_the_mode() -> Iterator[None]:
    """`jaxobs.instrument` around `nnx.jit`."""
    model = Net()
    f = jaxobs.instrument(nnx.jit(lambda model, x: model(x).sum()))
    f(model, array(8, 4))
    f(model, array(9, 4))
    model.eval()
    x = array(8, 4)
    yield
    f(model, x)


# ------------------------------------------------------------------------------------------------ Equinox


@eqx_case("structure", "model", says="3", only=True)
def eqx_near_by_a_static_field() -> Iterator[None]:
    """Metadata of a module."""
    f = eqx.filter_jit(lambda model, x: model(x).sum())
    f(Affine(array(), jax.nn.relu, 2), array(4))
    f(Affine(array(), jax.nn.relu, 2), array(5))
    model, x = Affine(array(), jax.nn.relu, 3), array(4)
    yield
    f(model, x)


@eqx_case("static_argument", "model.activation", only=True)
def eqx_near_by_a_static_leaf() -> Iterator[None]:
    """A function in a module."""
    f = eqx.filter_jit(lambda model, x: model(x).sum())
    f(Affine(array(), jax.nn.relu, 2), array(4))
    f(Affine(array(), jax.nn.relu, 2), array(5))
    model, x = Affine(array(), jnp.tanh, 2), array(4)
    yield
    f(model, x)


@eqx_case("structure", "model.weight", says="None", only=True)
def eqx_near_by_what_was_none() -> Iterator[None]:
    """A parameter that was left out."""
    f = eqx.filter_jit(lambda model, x: x if model.weight is None else model(x))
    f(Affine(None, jax.nn.relu, 2), array(4))
    f(Affine(None, jax.nn.relu, 2), array(5))
    model, x = Affine(array(), jax.nn.relu, 2), array(4)
    yield
    f(model, x)


# ------------------------------------------------------------------------------------------------ pmap, AOT, derived


@case("pmap", "structure", "batch['b']", devices=2, only=True)
def pmap_near_by_a_key() -> Iterator[None]:
    """As under `jit`."""
    f = jax.pmap(lambda batch: sum(each.sum() for each in batch.values()))
    f({"a": np.zeros((2, 4), np.float32)})
    f({"a": np.zeros((2, 5), np.float32)})
    batch = {"a": np.zeros((2, 4), np.float32), "b": np.zeros((2, 4), np.float32)}
    yield
    f(batch)


@case("pmap", "static_argument", "n", devices=2, only=True)
def pmap_near_by_a_static_value() -> Iterator[None]:
    """`static_broadcasted_argnums`."""
    f = jax.pmap(lambda x, n: x * n, static_broadcasted_argnums=1)
    f(np.zeros((2, 4), np.float32), 2)
    f(np.zeros((2, 5), np.float32), 2)
    x = np.zeros((2, 4), np.float32)
    yield
    f(x, 3)


@case("AOT", "structure", "model", says="(False, 1, 'm')", only=True)
def lowered_near_by_metadata() -> Iterator[None]:
    """Without arrays."""
    f = jax.jit(lambda model, x: model.weights * x)
    for size in (4, 5):
        f.lower(Model(array()), jax.ShapeDtypeStruct((size,), np.float32)).compile()
    model = Model(array(), train=False)
    yield
    f.lower(model, jax.ShapeDtypeStruct((4,), np.float32)).compile()


@case("AOT", "static_argument", "n", only=True)
def traced_near_by_a_static_value() -> Iterator[None]:
    """`f.trace(...)`, then `.lower()` and `.compile()`."""
    f = jax.jit(lambda x, n: x * n, static_argnums=1)
    for size in (4, 5):
        f.trace(jax.ShapeDtypeStruct((size,), np.float32), 2).lower().compile()
    yield
    f.trace(jax.ShapeDtypeStruct((4,), np.float32), 3).lower().compile()


@case("vmap", "dtype", only=True)
def vmapped_near_by_a_type() -> Iterator[None]:
    """A jitted function under `jax.vmap`."""
    f = jax.vmap(jax.jit(lambda x, y: (x * y).sum()))
    f(array(4, 2), array(4, 2))
    f(array(4, 3), array(4, 3))
    x, y = array(4, 2), array(4, 2, dtype=np.int32)
    yield
    f(x, y)


@case("eager", "static_argument", only=True)
def an_operation_near_by_a_parameter() -> Iterator[None]:
    """A jitted function of JAX's, called from one line."""

    def spread(x: Any, axis: int) -> Any:
        return jnp.var(x, axis=axis)

    spread(array(4, 4), 0)
    spread(array(5, 4), 0)
    x = array(4, 4)
    yield
    spread(x, 1)
