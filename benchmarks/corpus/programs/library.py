"""Functions that libraries jit: Flax NNX and Equinox."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from benchmarks.corpus.judging import Body, case
from benchmarks.corpus.programs.plain import array

HAS_FLAX = importlib.util.find_spec("flax") is not None
HAS_EQUINOX = importlib.util.find_spec("equinox") is not None


def nnx_case(cause: str | None, *paths: str, **options: Any) -> Callable[[Body], Body]:
    return case("nnx.jit", cause, *paths, needs=lambda: HAS_FLAX, **options)


def eqx_case(cause: str | None, *paths: str, **options: Any) -> Callable[[Body], Body]:
    return case("eqx.filter_jit", cause, *paths, needs=lambda: HAS_EQUINOX, **options)


if HAS_FLAX:
    from flax import nnx

    class Net(nnx.Module):  # type: ignore[misc]
        """Two layers, one of which drops out."""

        def __init__(self, width: int = 4) -> None:
            self.linear = nnx.Linear(4, width, rngs=nnx.Rngs(0))
            self.dropout = nnx.Dropout(0.5, deterministic=False, rngs=nnx.Rngs(1))

        def __call__(self, x: Any) -> Any:
            return self.dropout(self.linear(x))


@nnx_case("shape", "x", says="float32[5,4]")
def nnx_another_batch() -> Iterator[None]:
    """The array beside the model."""
    model = Net()
    f = nnx.jit(lambda model, x: model(x).sum())
    f(model, array(2, 4))
    x = array(5, 4)
    yield
    f(model, x)


@nnx_case("dtype", "batch['image']")
def nnx_another_type() -> Iterator[None]:
    """In a dictionary."""
    model = Net()
    f = nnx.jit(lambda model, batch: model(batch["image"].astype(np.float32)).sum())
    f(model, {"image": array(2, 4)})
    batch = {"image": array(2, 4, dtype=np.int32)}
    yield
    f(model, batch)


@nnx_case("structure", "model.linear.out_features", says=("`model.linear.kernel` float32[4,4] -> float32[4,8]",))
def nnx_a_wider_model() -> Iterator[None]:
    """Parameters by the attribute that the user wrote."""
    f = nnx.jit(lambda model, x: model.linear(x).sum())
    f(Net(4), array(2, 4))
    model, x = Net(8), array(2, 4)
    yield
    f(model, x)


@nnx_case("structure", "model.dropout.deterministic", says="False -> True")
def nnx_evaluation_mode() -> Iterator[None]:
    """`model.eval()` changes the model's static part."""
    model = Net()
    f = nnx.jit(lambda model, x: model(x).sum())
    f(model, array(2, 4))
    x = array(2, 4)
    model.eval()
    yield
    f(model, x)


@nnx_case("new_function")
def nnx_jitted_in_a_loop() -> Iterator[None]:
    """A lambda made again."""
    x = array(2, 4)

    def call() -> None:
        nnx.jit(lambda x: x * 2)(x)

    call()
    yield
    call()


@nnx_case("static_argument", "n")
def nnx_another_static_value() -> Iterator[None]:
    """`static_argnames`."""
    model = Net()
    f = nnx.jit(lambda model, x, n: model.linear(x).sum() * n, static_argnames="n")
    x = array(2, 4)
    f(model, x, n=2)
    yield
    f(model, x, n=3)


@nnx_case("placement", "x", devices=2)
def nnx_committed() -> Iterator[None]:
    """Committed to a device."""
    f = nnx.jit(lambda x: x * 3)
    f(array(4))
    x = jax.device_put(array(4), jax.devices()[0])
    yield
    f(x)


@nnx_case("context", "jax_default_matmul_precision")
def nnx_in_another_context() -> Iterator[None]:
    """A context manager."""
    model = Net()
    f = nnx.jit(lambda model, x: model.linear(x).sum())
    x = array(2, 4)
    f(model, x)
    yield
    with jax.default_matmul_precision("float32"):
        f(model, x)


@nnx_case(None)
def nnx_again() -> Iterator[None]:
    """The model's arrays change, nothing else."""
    model = Net()

    @nnx.jit  # type: ignore[untyped-decorator]
    def train(model: Any, x: Any) -> Any:
        model.linear.bias.value = model.linear.bias.value + 1
        return model(x).sum()

    x = array(2, 4)
    train(model, x)
    train(model, x)
    yield
    train(model, x)
    train(model, x)


if HAS_EQUINOX:
    import equinox as eqx

    class Affine(eqx.Module):  # type: ignore[misc]
        """A weight, an activation that is a static leaf, and a static field."""

        weight: Any
        activation: Any
        scale: int = eqx.field(static=True)

        def __call__(self, x: Any) -> Any:
            return self.activation(self.weight * x) * self.scale

        @eqx.filter_jit  # type: ignore[untyped-decorator]
        def apply(self, x: Any) -> Any:
            return self(x)


@eqx_case("shape", "x", says="float32[5]")
def eqx_another_batch() -> Iterator[None]:
    """The argument by its name."""
    f = eqx.filter_jit(lambda model, x: model(x).sum())
    model = Affine(array(), jax.nn.relu, 2)
    f(model, array(4))
    x = array(5)
    yield
    f(model, x)


@eqx_case("shape", "model.weight")
def eqx_another_weight() -> Iterator[None]:
    """The first argument is taken apart by Equinox; its path is the user's all the same."""
    f = eqx.filter_jit(lambda model, x: model(x).sum())
    f(Affine(array(), jax.nn.relu, 2), array(4))
    model, x = Affine(array(4), jax.nn.relu, 2), array(4)
    yield
    f(model, x)


@eqx_case("dtype", "batch['image']")
def eqx_another_type() -> Iterator[None]:
    """A keyword argument with a dictionary."""
    f = eqx.filter_jit(lambda *, batch: batch["image"].sum() + batch["label"].sum())
    f(batch={"image": array(4), "label": array(4)})
    batch = {"image": array(4, dtype=np.int32), "label": array(4)}
    yield
    f(batch=batch)


@eqx_case("static_argument", "n", says=("2", "3"))
def eqx_another_number() -> Iterator[None]:
    f = eqx.filter_jit(lambda x, n: x * n)
    x = array(4)
    f(x, 2)
    yield
    f(x, 3)


@eqx_case("static_argument", "model.activation", says=("relu", "tanh"))
def eqx_another_activation() -> Iterator[None]:
    """A function in a module is a static leaf."""
    f = eqx.filter_jit(lambda model, x: model(x).sum())
    x = array(4)
    f(Affine(array(), jax.nn.relu, 2), x)
    model = Affine(array(), jnp.tanh, 2)
    yield
    f(model, x)


@eqx_case("structure", says=("2", "3"))
def eqx_another_static_field() -> Iterator[None]:
    """A static field is part of the structure."""
    f = eqx.filter_jit(lambda model, x: model(x).sum())
    x = array(4)
    f(Affine(array(), jax.nn.relu, 2), x)
    model = Affine(array(), jax.nn.relu, 3)
    yield
    f(model, x)


@eqx_case("structure", "mask")
def eqx_none_became_an_array() -> Iterator[None]:
    f = eqx.filter_jit(lambda x, mask: x if mask is None else x * mask)
    x, mask = array(4), array(4)
    f(x, None)
    yield
    f(x, mask)


@eqx_case("new_function")
def eqx_jitted_in_a_loop() -> Iterator[None]:
    """A lambda made again."""
    x = array(4)

    def call() -> None:
        eqx.filter_jit(lambda x: x * 3)(x)

    call()
    yield
    call()


@eqx_case("shape", "x")
def eqx_a_method() -> Iterator[None]:
    """A jitted method of a module."""
    model = Affine(array(), jax.nn.relu, 2)
    model.apply(array(4))
    x = array(5)
    yield
    model.apply(x)


@eqx_case("sharding", "x", devices=8)
def eqx_another_sharding() -> Iterator[None]:
    """Over a mesh."""
    mesh = Mesh(np.array(jax.devices()[:8]), ("data",))
    f = eqx.filter_jit(lambda x: x * 4)
    f(jax.device_put(np.zeros(8, np.float32), NamedSharding(mesh, P("data"))))
    x = jax.device_put(np.zeros(8, np.float32), NamedSharding(mesh, P()))
    yield
    f(x)


@eqx_case(None)
def eqx_again() -> Iterator[None]:
    """An equal module made again."""
    f = eqx.filter_jit(lambda model, x: model(x).sum())
    x = array(4)
    f(Affine(array(), jax.nn.relu, 2), x)
    model = Affine(array(), jax.nn.relu, 2)
    yield
    f(model, x)
