"""Plain functions, methods and ahead-of-time programs, jitted by `jax.jit` and by `jaxobs.jit`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxobs
from benchmarks.corpus.judging import Body, case


def array(*shape: int, dtype: Any = np.float32) -> Any:
    """An array on the first device, uncommitted, that cost no compilation."""
    return jnp.asarray(np.zeros(shape, dtype))


def both(cause: str | None, *paths: str, **options: Any) -> Callable[[Callable[[Any], Iterator[None]]], None]:
    """The case under `jax.jit` that `install` watches, and under `jaxobs.jit`."""

    def add(body: Callable[[Any], Iterator[None]]) -> None:
        for way, jit in (("jit", jax.jit), ("jaxobs.jit", jaxobs.jit)):

            def bound(jit: Any = jit) -> Iterator[None]:
                return body(jit)

            bound.__name__ = body.__name__
            case(way, cause, *paths, **options)(bound)

    return add


# ------------------------------------------------------------------------------------------------ arguments


@both("first_call")
def first_call(jit: Any) -> Iterator[None]:
    """Nothing was compiled before."""

    def never_called(x: Any) -> Any:
        return x * 2

    f = jit(never_called)
    # Under the second way the same code is a new function object: give it code of its own.
    never_called.__code__ = never_called.__code__.replace(co_consts=(*never_called.__code__.co_consts, jit))
    x = array(3)
    yield
    f(x)


@both("shape", "x", says=("float32[4]", "float32[5]"))
def another_length(jit: Any) -> Iterator[None]:
    f = jit(lambda x: x * 2)
    f(array(4))
    x = array(5)
    yield
    f(x)


@both("shape", "x", says=("float32[4]", "float32[4,1]"))
def another_rank(jit: Any) -> Iterator[None]:
    """More dimensions."""
    f = jit(lambda x: x * 3)
    f(array(4))
    x = array(4, 1)
    yield
    f(x)


@both("shape", "batch['image']", says=("float32[32,128]", "float32[17,128]"))
def the_last_batch(jit: Any) -> Iterator[None]:
    """The leaf of a nested argument, against the nearest of several signatures."""

    @jit  # type: ignore[untyped-decorator]
    def train_step(state: Any, batch: Any) -> Any:
        return state + batch["image"].sum() + batch["label"].sum()

    for rows in (64, 32):
        train_step(array(), {"image": array(rows, 128), "label": array(32, dtype=np.int32)})
    batch = {"image": array(17, 128), "label": array(32, dtype=np.int32)}
    yield
    train_step(array(), batch)


@both("shape", "batch['image']", "batch['label']")
def two_arguments_at_once(jit: Any) -> Iterator[None]:
    """Both are told."""

    @jit  # type: ignore[untyped-decorator]
    def train_step(batch: Any) -> Any:
        return batch["image"].sum() + batch["label"].sum()

    train_step({"image": array(8, 2), "label": array(8)})
    batch = {"image": array(7, 2), "label": array(7)}
    yield
    train_step(batch)


class Moments(NamedTuple):
    count: Any
    mu: Any


@dataclasses.dataclass
class State:
    step: Any
    opt_state: Any


jax.tree_util.register_dataclass(State, data_fields=["step", "opt_state"], meta_fields=[])


@both("shape", "state.opt_state[0].mu['w']", says="float32[3]")
def deep_inside_a_state(jit: Any) -> Iterator[None]:
    """A path through a dataclass, a tuple, a named tuple and a dictionary."""

    def state(size: int) -> State:
        return State(array(), (Moments(array(), {"b": array(2), "w": array(size)}),))

    f = jit(lambda state: jax.tree_util.tree_map(lambda x: x + 1, state))
    f(state(2))
    changed = state(3)
    yield
    f(changed)


@both("shape", "scale")
def a_keyword_argument(jit: Any) -> Iterator[None]:
    """By its name."""
    f = jit(lambda x, *, scale: x.sum() * scale)
    f(array(2), scale=array(1))
    x, scale = array(2), array(4)
    yield
    f(x, scale=scale)


@both("shape", "arrays[1]")
def a_variadic_argument(jit: Any) -> Iterator[None]:
    """By its position in it."""
    f = jit(lambda *arrays: sum(each.sum() for each in arrays))
    f(array(2), array(3))
    arrays = array(2), array(4)
    yield
    f(*arrays)


@both("shape", "rate")
def a_keyword_dictionary(jit: Any) -> Iterator[None]:
    def keyworded(x: Any, **options: Any) -> Any:
        return x + options["rate"].sum()

    f = jit(keyworded)
    f(array(2), rate=array(1))
    rate = array(3)
    yield
    f(array(2), rate=rate)


@both("dtype", "x", says=("float32[4]", "int32[4]"))
def another_type(jit: Any) -> Iterator[None]:
    """Integers in the place of floats."""
    f = jit(lambda x: x + x)
    f(array(4))
    x = array(4, dtype=np.int32)
    yield
    f(x)


@both("dtype", "x", says=("bfloat16", "float32"))
def half_precision(jit: Any) -> Iterator[None]:
    """An extended type."""
    f = jit(lambda x: x - x)
    x = jax.device_put(np.zeros(4, jnp.bfloat16))
    f(array(4))
    yield
    f(x)


@both("dtype", "key")
def a_typed_key(jit: Any) -> Iterator[None]:
    """A new-style key in the place of raw key data has another type, and one dimension less."""
    f = jit(lambda key: jax.random.uniform(key))
    f(jax.random.key(0))
    key = jax.random.key(0, impl="rbg")
    yield
    f(key)


@both("dtype", "x")
def a_python_integer_for_a_float(jit: Any) -> Iterator[None]:
    """Scalars have types too."""
    f = jit(lambda x: x * 2)
    f(1.5)
    yield
    f(2)


@both("weak_type", "x", says="weak_type=True")
def a_python_scalar_became_an_array(jit: Any) -> Iterator[None]:
    """State that begins as `0.0` and comes back as an array."""
    f = jit(lambda x: x + np.float32(1))
    f(0.0)
    x = array()
    yield
    f(x)


@both("weak_type", "state.step")
def the_step_of_a_state(jit: Any) -> Iterator[None]:
    """Inside a state."""
    f = jit(lambda state: State(state.step + np.int32(1), state.opt_state))
    f(State(0, array(2)))
    state = State(array(dtype=np.int32), array(2))
    yield
    f(state)


# ------------------------------------------------------------------------------------------------ structure


@both("structure", "mask", says="mask")
def none_became_an_array(jit: Any) -> Iterator[None]:
    def masked(x: Any, mask: Any) -> Any:
        return x if mask is None else x * mask

    f = jit(masked)
    f(array(4), None)
    x, mask = array(4), array(4)
    yield
    f(x, mask)


@both("structure", "batch['label']")
def a_key_more(jit: Any) -> Iterator[None]:
    f = jit(lambda batch: sum(each.sum() for each in batch.values()))
    f({"image": array(4)})
    batch = {"image": array(4), "label": array(4)}
    yield
    f(batch)


@both("structure", says=("list", "tuple"))
def a_tuple_for_a_list(jit: Any) -> Iterator[None]:
    """The paths are the same, only the container is another."""
    f = jit(lambda pair: pair[0] + pair[1])
    f([array(2), array(2)])
    pair = (array(2), array(2))
    yield
    f(pair)


@both("structure", "y")
def by_keyword_instead_of_by_position(jit: Any) -> Iterator[None]:
    f = jit(lambda x, y: x + y)
    f(array(2), array(2))
    x, y = array(2), array(2)
    yield
    f(x, y=y)


@both("structure", "args[2]", says="absent")
def one_argument_more(jit: Any) -> Iterator[None]:
    def variadic(*args: Any) -> Any:
        return sum(each.sum() for each in args)

    f = jit(variadic)
    f(array(2), array(2))
    args = array(2), array(2), array(2)
    yield
    f(*args)


@jax.tree_util.register_pytree_node_class
class Layer:
    """A user's node with metadata."""

    def __init__(self, weight: Any, activation: str) -> None:
        self.weight, self.activation = weight, activation

    def tree_flatten(self) -> Any:
        return (self.weight,), (self.activation,)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Layer:
        return cls(children[0], aux[0])


@both("structure", says=("relu", "tanh"))
def metadata_of_a_node(jit: Any) -> Iterator[None]:
    """The arrays are the same, what stands beside them is not."""
    f = jit(lambda layer: layer.weight * (2 if layer.activation == "relu" else 3))
    f(Layer(array(2), "relu"))
    layer = Layer(array(2), "tanh")
    yield
    f(layer)


# ------------------------------------------------------------------------------------------------ static arguments


@both("static_argument", "n", says=("2", "3"))
def another_static_value(jit: Any) -> Iterator[None]:
    f = jit(lambda x, n: x * n, static_argnames="n")
    f(array(2), n=2)
    x = array(2)
    yield
    f(x, n=3)


@both("static_argument", "n", says=("7", "7.0"))
def an_equal_number_of_another_type(jit: Any) -> Iterator[None]:
    """7 == 7.0, but not to JAX."""
    f = jit(lambda x, n: x * n, static_argnums=1)
    f(array(2), 7)
    x = array(2)
    yield
    f(x, 7.0)


class Config:
    """A static argument that hashes by identity."""

    def __repr__(self) -> str:
        return "Config()"


@both("static_argument", "config", says="identity")
def an_equal_looking_object(jit: Any) -> Iterator[None]:
    f = jit(lambda config, x: x * 2, static_argnums=0)
    f(Config(), array(2))
    config, x = Config(), array(2)
    yield
    f(config, x)


@both("static_argument", "rate", says="NaN")
def not_a_number(jit: Any) -> Iterator[None]:
    """NaN never equals itself."""
    f = jit(lambda x, rate: x * 2, static_argnames="rate")
    f(array(2), rate=float("nan"))
    x = array(2)
    yield
    f(x, rate=float("nan"))


class Unequal:
    """Equal hash and repr, never equal: only `__eq__` tells."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unequal) and self.value == other.value

    def __repr__(self) -> str:
        return "Unequal()"


@both("static_argument", "config")
def only_equality_tells(jit: Any) -> Iterator[None]:
    """Hash, type and repr agree."""
    f = jit(lambda config, x: x * config.value, static_argnums=0)
    first = Unequal(1)
    f(first, array(2))
    config, x = Unequal(2), array(2)
    yield
    f(config, x)


@both("static_argument", "activation", says=("relu", "tanh"))
def a_static_function(jit: Any) -> Iterator[None]:
    """A function as a static argument."""
    f = jit(lambda x, activation: activation(x), static_argnames="activation")
    f(array(2), activation=jax.nn.relu)
    x = array(2)
    yield
    f(x, activation=jnp.tanh)


@both("static_argument", "activation", says="identity")
def a_static_lambda_made_again(jit: Any) -> Iterator[None]:
    """A lambda as a static argument compares by identity."""
    f = jit(lambda x, activation: activation(x), static_argnums=1)
    x = array(2)

    def call() -> None:
        f(x, lambda value: value * 2)

    call()
    yield
    call()


@both("static_argument", "n")
def a_default_of_a_static_argument(jit: Any) -> Iterator[None]:
    """Left out the first time."""

    def defaulted(x: Any, n: Any = 2) -> Any:
        return x * n

    f = jit(defaulted, static_argnames="n")
    f(array(2), n=5)
    f(array(2), n=4)
    x = array(2)
    yield
    f(x, n=6)


# ------------------------------------------------------------------------------------------------ options, context


@both("jit_options", says="donate_argnums")
def donation(jit: Any) -> Iterator[None]:
    def stepped(x: Any) -> Any:
        return x + 1

    jit(stepped)(array(4))
    x = array(4)
    yield
    jit(stepped, donate_argnums=0)(x)


@both("jit_options", says="out_shardings")
def shardings_of_the_results(jit: Any) -> Iterator[None]:
    def spread(x: Any) -> Any:
        return x + 2

    where = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    jit(spread)(array(4))
    x = array(4)
    yield
    jit(spread, out_shardings=where)(x)


@both("jit_options", says="compiler_options")
def compiler_options(jit: Any) -> Iterator[None]:
    """Options of the compiler."""

    def tuned(x: Any) -> Any:
        return x @ x

    jit(tuned)(array(4, 4))
    x = array(4, 4)
    yield
    jit(tuned, compiler_options={"xla_cpu_enable_fast_math": True})(x)


@both("context", "jax_default_matmul_precision", says="float32")
def matmul_precision(jit: Any) -> Iterator[None]:
    """A context manager."""
    f = jit(lambda x: x @ x)
    f(array(4, 4))
    x = array(4, 4)
    yield
    with jax.default_matmul_precision("float32"):
        f(x)


@both("context", "jax_enable_x64", says=("False", "True"))
def sixty_four_bits(jit: Any) -> Iterator[None]:
    """A config value that changes later."""
    f = jit(lambda x: x * 2)
    x = array(4)
    f(x)
    yield
    jax.config.update("jax_enable_x64", True)
    try:
        f(x)
    finally:
        jax.config.update("jax_enable_x64", False)


@both("context", "jax_numpy_dtype_promotion", says="strict")
def strict_promotion(jit: Any) -> Iterator[None]:
    """A context manager."""
    f = jit(lambda x: x * x)
    x = array(4)
    f(x)
    yield
    with jax.numpy_dtype_promotion("strict"):
        f(x)


@both("context", "jax_default_device", devices=2)
def the_default_device(jit: Any) -> Iterator[None]:
    f = jit(lambda x: x * 5)
    x = np.zeros(4, np.float32)
    f(x)
    yield
    with jax.default_device(jax.devices()[1]):
        f(x)


@both("context", "with mesh", devices=2)
def inside_a_mesh(jit: Any) -> Iterator[None]:
    """`with mesh:` is part of the key."""
    f = jit(lambda x: x * 6)
    x = array(4)
    f(x)
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("data",))
    yield
    with mesh:
        f(x)


@both("context", "jax_debug_key_reuse", needs=lambda: jax.__version_info__ >= (0, 9))
def a_debugging_option(jit: Any) -> Iterator[None]:
    f = jit(lambda x: x * 7)
    x = array(4)
    f(x)
    yield
    with jax.debug_key_reuse(True):
        f(x)


@both("shape", "x", says="jax_default_matmul_precision")
def a_shape_and_the_context(jit: Any) -> Iterator[None]:
    """Several at once: all of them are told."""
    f = jit(lambda x: x @ x.T)
    f(array(4, 4))
    x = array(5, 4)
    yield
    with jax.default_matmul_precision("float32"):
        f(x)


# ------------------------------------------------------------------------------------------------ functions


@both("new_function", says="lambda")
def a_lambda_made_again(jit: Any) -> Iterator[None]:
    x = array(4)

    def call() -> None:
        jit(lambda x: x * 8)(x)

    call()
    yield
    call()


@both("new_function")
def a_closure_made_again(jit: Any) -> Iterator[None]:
    x = array(4)

    def make(factor: float) -> Any:
        def scaled(x: Any) -> Any:
            return x * factor

        return jit(scaled)

    make(1.0)(x)
    yield
    make(2.0)(x)


def scaled_by(factor: Any, x: Any) -> Any:
    """For partials."""
    return x * factor


@both("new_function")
def a_partial_made_again(jit: Any) -> Iterator[None]:
    x = array(4)
    jit(functools.partial(scaled_by, 2.0))(x)
    yield
    jit(functools.partial(scaled_by, 2.0))(x)


class Model:
    """A user's object with a method to jit."""

    def __init__(self, factor: float = 2.0) -> None:
        self.factor = factor

    def apply(self, x: Any) -> Any:
        return x * self.factor

    @functools.partial(jax.jit, static_argnums=0)
    def step(self, x: Any) -> Any:
        return x * self.factor


@both("new_function", says="apply")
def a_method_of_a_new_object(jit: Any) -> Iterator[None]:
    """A bound method of an object made again."""
    x = array(4)
    jit(Model().apply)(x)
    yield
    jit(Model().apply)(x)


@both("new_function", says="-> float32[")
def a_new_lambda_and_a_new_shape(jit: Any) -> Iterator[None]:
    def call(x: Any) -> None:
        jit(lambda x: x * 9)(x)

    call(array(4))
    x = array(5 if jit is jax.jit else 6)
    yield
    call(x)


@both("shape", "x")
def a_shape_that_an_older_closure_had(jit: Any) -> Iterator[None]:
    """The signatures of another function object are no excuse."""

    def make() -> Any:
        def recreated(x: Any) -> Any:
            return x * 10

        return jit(recreated)

    first = make()
    first(array(4))
    first(array(5))
    second = make()
    second(array(4))
    x = array(5)
    yield
    second(x)


@case("method", "static_argument", "self", says="identity")
def a_method_with_self_static() -> Iterator[None]:
    """The usual way of jitting a method."""
    Model().step(array(4))
    model, x = Model(), array(4)
    yield
    model.step(x)


@case("method", "shape", "x", says="float32[6]")
def a_shape_in_a_method() -> Iterator[None]:
    """Beside a static `self`."""
    model = Model()
    model.step(array(5))
    x = array(6)
    yield
    model.step(x)


@case("method", "dtype", "x")
def a_type_in_a_bound_method() -> Iterator[None]:
    """A bound method, jitted."""
    model = Model()
    f = jax.jit(model.apply)
    f(array(4))
    x = array(4, dtype=np.int32)
    yield
    f(x)


# ------------------------------------------------------------------------------------------------ caches


@both("cache_cleared")
def all_caches_cleared(jit: Any) -> Iterator[None]:
    """`jax.clear_caches()`."""
    f = jit(lambda x: x * 11)
    x = array(4)
    f(x)
    yield
    jax.clear_caches()
    f(x)


@both("cache_cleared")
def the_caches_of_one_function_cleared(jit: Any) -> Iterator[None]:
    """`f.clear_cache()`."""
    f = jit(lambda x: x * 12)
    x = array(4)
    f(x)
    yield
    f.clear_cache()
    f(x)


# ------------------------------------------------------------------------------------------------ ahead of time


def aot(cause: str | None, *paths: str, **options: Any) -> Callable[[Body], Body]:
    return case("AOT", cause, *paths, **options)


@aot("shape", "x", says="float32[5]")
def lowered_for_another_shape() -> Iterator[None]:
    """`f.lower(...).compile()`."""
    f = jax.jit(lambda x: x * 13)
    f.lower(array(4)).compile()
    x = array(5)
    yield
    f.lower(x).compile()


@aot("dtype", "x")
def lowered_for_a_struct_of_another_type() -> Iterator[None]:
    """Without arrays."""
    f = jax.jit(lambda x: x * 14)
    f.lower(jax.ShapeDtypeStruct((4,), np.float32)).compile()
    yield
    f.lower(jax.ShapeDtypeStruct((4,), np.int32)).compile()


@aot("static_argument", "n")
def lowered_for_another_static_value() -> Iterator[None]:
    """Static arguments are given to `lower` as well."""
    f = jax.jit(lambda x, n: x * n, static_argnames="n")
    x = array(4)
    f.lower(x, n=2).compile()
    yield
    f.lower(x, n=3).compile()


@aot("structure", "batch['b']")
def traced_for_another_structure() -> Iterator[None]:
    """`f.trace(...).lower().compile()`."""
    f = jax.jit(lambda batch: sum(each.sum() for each in batch.values()))
    f.trace({"a": array(4)}).lower().compile()
    batch = {"a": array(4), "b": array(4)}
    yield
    f.trace(batch).lower().compile()


# ------------------------------------------------------------------------------------------------ transformations


@both("shape", "x")
def under_grad(jit: Any) -> Iterator[None]:
    """The forward pass is linearised."""
    f = jit(lambda x: (x * x).sum())
    g = jit(jax.grad(f))
    g(array(4))
    x = array(5)
    yield
    g(x)


@both("shape", says="float32[5]", times=2)
def under_grad_from_outside(jit: Any) -> Iterator[None]:
    """Two programs, the forward and the backward pass, both for the same reason."""
    f = jit(lambda x: (x * x).sum())
    jax.grad(f)(array(4))
    x = array(5)
    yield
    jax.grad(f)(x)


@both("shape", "x")
def under_vmap_from_outside(jit: Any) -> Iterator[None]:
    """The batched program."""
    f = jit(lambda x: x * 21)
    jax.vmap(f)(array(4, 2))
    x = array(5, 2)
    yield
    jax.vmap(f)(x)


@both("dtype", "xs")
def scanned(jit: Any) -> Iterator[None]:
    """A scan inside."""
    f = jit(lambda xs: jax.lax.scan(lambda c, x: (c + x, c), xs[0], xs))
    f(array(4))
    xs = array(4, dtype=np.int32)
    yield
    f(xs)


@both("shape", "x")
def with_a_callback(jit: Any) -> Iterator[None]:
    """Programs that call back to Python."""

    def told(x: Any) -> Any:
        jax.debug.callback(lambda value: None, x)
        return x * 2

    f = jit(told)
    f(array(4))
    x = array(5)
    yield
    f(x)
