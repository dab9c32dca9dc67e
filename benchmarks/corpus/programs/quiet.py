"""Changes that compile nothing, and of which nothing may be told."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from benchmarks.corpus.programs.plain import array, both


@both(None)
def the_same_again(jit: Any) -> Iterator[None]:
    """Nothing changes."""
    f = jit(lambda x: x * 2)
    f(array(4))
    x = array(4)
    yield
    for _ in range(5):
        f(x)


@both(None)
def numpy_for_jax_arrays(jit: Any) -> Iterator[None]:
    f = jit(lambda x: x * 3)
    f(array(4))
    yield
    f(np.ones(4, np.float32))
    f(np.ones(4, np.float64))


@both(None)
def donated_buffers(jit: Any) -> Iterator[None]:
    """The state goes in and comes out."""
    f = jit(lambda x: x + 1, donate_argnums=0)
    x = f(array(4))
    yield
    for _ in range(3):
        x = f(x)


@both(None)
def dictionary_keys_in_another_order(jit: Any) -> Iterator[None]:
    f = jit(lambda batch: batch["a"] + batch["b"])
    a, b = array(2), array(2)
    f({"a": a, "b": b})
    yield
    f({"b": b, "a": a})


@both(None, devices=2)
def an_equal_mesh_made_again(jit: Any) -> Iterator[None]:
    """Meshes compare by value."""

    def placed() -> Any:
        mesh = Mesh(np.array(jax.devices()[:2]), ("data",))
        return jax.device_put(np.zeros(4, np.float32), NamedSharding(mesh, P("data")))

    f = jit(lambda x: x * 4)
    f(placed())
    x = placed()
    yield
    f(x)


@both(None, devices=2)
def an_equal_spec_written_otherwise(jit: Any) -> Iterator[None]:
    """P() and P(None)."""
    mesh = Mesh(np.array(jax.devices()[:2]), ("data",))
    f = jit(lambda x: x * 5)
    f(jax.device_put(np.zeros(4, np.float32), NamedSharding(mesh, P())))
    x = jax.device_put(np.zeros(4, np.float32), NamedSharding(mesh, P(None)))
    yield
    f(x)


@both(None)
def a_second_thread(jit: Any) -> Iterator[None]:
    """Caches are shared by threads."""
    f = jit(lambda x: x * 6)
    x = array(4)
    f(x)
    yield
    threads = [threading.Thread(target=f, args=(x,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@both(None)
def jitted_again(jit: Any) -> Iterator[None]:
    """A second jit around a function that lives shares what was compiled."""

    def alive(x: Any) -> Any:
        return x * 7

    jit(alive)(array(4))
    x = array(4)
    yield
    jit(alive)(x)


@both(None)
def a_log_option(jit: Any) -> Iterator[None]:
    """Options that are in no key."""
    f = jit(lambda x: x * 8)
    x = array(4)
    f(x)
    yield
    with jax.log_compiles(False):
        f(x)


@both(None)
def the_same_context_again(jit: Any) -> Iterator[None]:
    """Back and forth between two contexts that were compiled for."""
    f = jit(lambda x: x @ x)
    x = array(4, 4)
    f(x)
    with jax.default_matmul_precision("float32"):
        f(x)
    yield
    f(x)
    with jax.default_matmul_precision("float32"):
        f(x)


@both(None)
def garbage_collected(jit: Any) -> Iterator[None]:
    f = jit(lambda x: x * 9)
    x = array(4)
    f(x)
    other = jit(lambda x: x * 10)
    other(x)
    yield
    del other
    gc.collect()
    f(x)


@both(None)
def a_static_argument_that_compares_by_value(jit: Any) -> Iterator[None]:
    """An equal tuple."""
    f = jit(lambda x, shape: x.reshape(shape), static_argnums=1)
    x = array(4)
    f(x, (2, 2))
    yield
    f(x, tuple(int(n) for n in "22"))


@both(None)
def shapes_only(jit: Any) -> Iterator[None]:
    """`eval_shape` and `make_jaxpr` trace, and compile nothing."""
    f = jit(lambda x: x * 11)
    yield
    jax.eval_shape(f, jax.ShapeDtypeStruct((4,), np.float32))
    jax.make_jaxpr(f)(np.zeros(4, np.float32))
