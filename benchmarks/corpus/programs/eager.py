"""Operations that JAX dispatches by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from benchmarks.corpus.judging import Body, case
from benchmarks.corpus.programs.plain import array


def eager(cause: str | None, *paths: str, **options: Any) -> Callable[[Body], Body]:
    return case("eager", cause, *paths, **options)


@eager("shape", says="float32[5]")
def an_operation_on_another_shape() -> Iterator[None]:
    """`jnp.sin` of another length."""
    jnp.sin(array(4))
    x = array(5)
    yield
    jnp.sin(x)


@eager("dtype", says="int32")
def an_operation_on_another_type() -> Iterator[None]:
    """Negation."""
    jax.lax.neg(array(4))
    x = array(4, dtype=np.int32)
    yield
    jax.lax.neg(x)


@eager("weak_type")
def an_operation_on_a_scalar() -> Iterator[None]:
    """A Python scalar is weakly typed."""
    jnp.cos(array())
    yield
    jnp.cos(1.0)


@eager("shape")
def a_jitted_function_of_jax() -> Iterator[None]:
    """`jnp.mean` is jitted inside JAX."""
    jnp.mean(array(4))
    x = array(5)
    yield
    jnp.mean(x)


@eager("static_argument")
def another_parameter_of_a_jitted_function() -> Iterator[None]:
    """`axis` is static."""
    jnp.std(array(4, 4), axis=0)
    x = array(4, 4)
    yield
    jnp.std(x, axis=1)


@eager("first_call")
def an_operation_with_other_parameters() -> Iterator[None]:
    """Another primitive with other parameters is another program: its first call."""
    jax.lax.transpose(array(2, 3, 4), (0, 2, 1))
    x = array(2, 3, 4)
    yield
    jax.lax.transpose(x, (2, 1, 0))


@eager("context", "jax_default_matmul_precision", says="float32")
def an_operation_in_another_context() -> Iterator[None]:
    """The precision of products."""
    jnp.dot(array(4, 4), array(4, 4))
    x = array(4, 4)
    yield
    with jax.default_matmul_precision("float32"):
        jnp.dot(x, x)


@eager("context", "jax_enable_x64")
def an_operation_with_sixty_four_bits() -> Iterator[None]:
    """A config value that changes later."""
    x = array(4)
    jnp.tan(x)
    yield
    jax.config.update("jax_enable_x64", True)
    try:
        jnp.tan(x)
    finally:
        jax.config.update("jax_enable_x64", False)


@eager("placement")
def an_operation_on_a_committed_array() -> Iterator[None]:
    """Committed to the device where it is."""
    jnp.sinh(array(4))
    x = jax.device_put(array(4), jax.devices()[0])
    yield
    jnp.sinh(x)


@eager("placement", devices=2)
def an_operation_on_another_device() -> Iterator[None]:
    jnp.cosh(jax.device_put(array(4), jax.devices()[0]))
    x = jax.device_put(array(4), jax.devices()[1])
    yield
    jnp.cosh(x)


@eager("sharding", devices=8)
def an_operation_on_another_sharding() -> Iterator[None]:
    """Over a mesh."""
    mesh = Mesh(np.array(jax.devices()[:8]), ("data",))
    jnp.tanh(jax.device_put(np.zeros(8, np.float32), NamedSharding(mesh, P("data"))))
    x = jax.device_put(np.zeros(8, np.float32), NamedSharding(mesh, P()))
    yield
    jnp.tanh(x)


@eager("cache_cleared")
def an_operation_after_the_caches_were_cleared() -> Iterator[None]:
    """`jax.clear_caches()`."""
    x = array(4)
    jnp.arcsin(x)
    yield
    jax.clear_caches()
    jnp.arcsin(x)


@eager(None)
def an_operation_again() -> Iterator[None]:
    """From another line, on another array."""
    x, y = array(4), array(4)
    jnp.exp(x)
    yield
    jnp.exp(y)


def _body(carry: Any, x: Any) -> Any:
    return carry + x, carry


@eager("shape")
def an_eager_scan() -> Iterator[None]:
    """Control flow outside of any jit."""
    jax.lax.scan(_body, np.float32(0), array(4))
    xs = array(5)
    yield
    jax.lax.scan(_body, np.float32(0), xs)


@eager("new_function", says="`scan` received a function")
def an_eager_scan_of_a_new_lambda() -> Iterator[None]:
    """The body is made again."""
    xs = array(4)

    def call() -> None:
        jax.lax.scan(lambda carry, x: (carry + x, x), np.float32(0), xs)

    call()
    yield
    call()


@eager("shape")
def an_eager_gradient() -> Iterator[None]:
    """The operations of a gradient; each one of them recompiles."""
    jax.lax.reduce_prod(array(4, 2), (0,))
    x = array(5, 2)
    yield
    jax.lax.reduce_prod(x, (0,))
