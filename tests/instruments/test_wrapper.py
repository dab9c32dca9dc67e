"""`jaxobs.jit` and `jaxobs.instrument` beside what they stand for: the same to look at, to bind, to pickle, to use."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import functools
import inspect
import pickle
import re
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import cloudpickle
import equinox as eqx
import flax.nnx as nnx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import wrapper_module
from helpers.paths import ROOT
from helpers.threads import OFTEN, at_once
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import jaxobs
from jaxobs import internals
from jaxobs.state import store

ONES = np.ones(8, np.float32)


def calls(name: str) -> int | None:
    """How many calls of the function labelled `name` were counted."""
    return next((each.calls for each in jaxobs.snapshot().functions if each.name == name), None)


def plain_text(text: str) -> str:
    """`text` without the addresses in it."""
    return re.sub(r"0x[0-9a-f]+", "0x", text)


def documented(x: int, /, y: int = 2, *, z: int = 3) -> int:
    """The sum of three."""
    return x + y + z


@pytest.mark.parametrize(
    "fun",
    [documented, lambda x: x, functools.partial(documented, y=1), jnp.sum, "".join, eqx.nn.Identity()],
    ids=["function", "lambda", "partial", "jitted", "builtin", "callable object"],
)
def test_looks_like_the_jitted_function(fun: Any) -> None:
    bare, ours = jax.jit(fun), jaxobs.jit(fun)
    for see in (repr, str, dir, lambda f: vars(f).keys(), lambda f: hasattr(f, "__wrapped__")):
        assert plain_text(str(see(ours))) == plain_text(str(see(bare)))
    for name in dir(bare):
        if name not in ("__class__", "__dict__", "_jit_info") and not callable(getattr(bare, name, None)):
            assert getattr(ours, name, None) == getattr(bare, name, None), name
    assert getattr(ours, "__wrapped__", None) is getattr(bare, "__wrapped__", None)


def test_signature_is_the_functions_own() -> None:
    for ours in (jaxobs.jit(documented), jaxobs.instrument(jax.jit(documented)), jaxobs.instrument(documented)):
        assert inspect.signature(ours) == inspect.signature(documented)
        assert inspect.getdoc(ours) == "The sum of three."
        assert inspect.getsource(ours) == inspect.getsource(documented)
        assert inspect.unwrap(ours) is documented or ours.__code__ is documented.__code__
        assert ours.__annotations__ == documented.__annotations__

    class Scale:
        def __call__(self, x: int, by: int = 2) -> int:
            return x * by

    assert inspect.signature(jaxobs.instrument(Scale())) == inspect.signature(Scale())
    assert inspect.signature(jaxobs.instrument(len)) == inspect.signature(len)
    with pytest.raises(ValueError, match="signature"):
        inspect.signature(jaxobs.instrument(max))


def test_is_what_isinstance_looks_for() -> None:
    ours = jaxobs.jit(documented)
    for kind in (jax.stages.Wrapped, type(jax.jit(documented)), Callable):
        assert isinstance(ours, kind)  # type: ignore[arg-type]
    chex = pytest.importorskip("chex")
    with pytest.raises(ValueError, match="must not wrap JAX-transformed function"):
        chex.assert_max_traces(ours, 2)
    compiled = jax.jit(lambda x: x).lower(1.0).compile()
    assert isinstance(jaxobs.instrument(compiled), jax.stages.Compiled)
    assert isinstance(jaxobs.instrument(eqx.filter_jit(lambda x: x)), eqx.Module)
    assert inspect.isfunction(jaxobs.instrument(documented))


def test_identity_hash_and_weak_references() -> None:
    one, two = jaxobs.jit(documented), jaxobs.jit(documented)
    assert one == one and one != two and len({one, two, one}) == 2
    assert weakref.ref(one)() is one


def test_instrumented_are_equal_where_the_wrapped_are() -> None:
    """Two wrappers of one bound method are equal, as the methods are, so that JAX finds what it traced for them."""
    model = Model()
    one, two = jaxobs.instrument(model.plain), jaxobs.instrument(model.plain)
    assert one is not two and one == two and hash(one) == hash(two)
    assert one != jaxobs.instrument(Model().plain) and one != 3


def test_attributes_can_be_set_and_removed() -> None:
    for wrapped in (jax.jit(documented), functools.partial(documented)):
        ours = jaxobs.instrument(wrapped)
        ours.tag = "mine"
        assert ours.tag == wrapped.tag == "mine"
        del ours.tag
        assert not hasattr(ours, "tag") and not hasattr(wrapped, "tag")
    for ours in (jaxobs.jit(documented), jaxobs.instrument(documented)):
        with pytest.raises(AttributeError, match="no_such_thing"):
            _ = ours.no_such_thing
    bare, ours = jax.jit(documented), jaxobs.jit(documented)
    bare.lower = ours.lower = "replaced"
    assert bare.lower == ours.lower == "replaced"


def test_copies_are_separate_and_count_together(fresh: None) -> None:
    ours = jaxobs.jit(lambda x: x + 1, name="copied")
    for other in (copy.copy(ours), copy.deepcopy(ours)):
        assert type(other) is type(ours) and other is not ours
        other.tag = 1
        assert not hasattr(ours, "tag")
        assert other(1) == ours(1) == 2
    assert calls("copied") == 4


def plus(x: Any, n: str = "a") -> Any:
    """Adds the length of a static argument: a traced one has none."""
    return x + len(n)


def test_decorator_in_all_its_forms(fresh: None) -> None:
    """Bare, called, through `functools.partial`, with a name, over and under other decorators."""

    @jaxobs.jit
    def one(x: Any) -> Any:
        return x + 1

    assert one(0) == jaxobs.jit()(lambda x: x + 1)(0) == 1
    assert functools.partial(jaxobs.jit, static_argnums=(1,))(plus)(0, "ab") == 2
    assert jaxobs.jit(name="three!", static_argnames="n")(plus)(0, n="abc") == 3
    assert functools.partial(jax.jit, static_argnums=1)(jaxobs.jit(static_argnums=1)(plus))(0, "abcd") == 4
    assert calls("three!") == calls(f"{__name__}.{one.__qualname__}") == 1


def test_instrument_refuses_what_cannot_be_called_and_a_name_that_is_no_text() -> None:
    with pytest.raises(TypeError, match=r"`instrument` needs a callable, but got int: 3\."):
        jaxobs.instrument(3)
    with pytest.raises(TypeError, match=r"`name` labels the function in metrics: it must be a string, not int: 3\."):
        jaxobs.jit(documented, name=3)


def test_instrument_twice_counts_once(fresh: None) -> None:
    ours = jaxobs.jit(lambda x, y=1: x + y, name="once")
    assert jaxobs.instrument(ours) is ours
    jaxobs.instrument(functools.partial(ours, y=2))(1)
    jaxobs.instrument(types.MethodType(ours, 1))(1)
    assert calls("once") == 2 and len(jaxobs.snapshot().functions) == 1
    jaxobs.instrument(ours, name="again")(1)
    assert (calls("once"), calls("again")) == (2, 1)


def test_disabled_is_jax_itself(monkeypatch: pytest.MonkeyPatch, fresh: None) -> None:
    """With `JAXOBS_DISABLED` nothing is wrapped: `jit` gives what `jax.jit` gives, `instrument` its argument."""
    monkeypatch.setenv("JAXOBS_DISABLED", "1")
    assert type(jaxobs.jit(documented)) is type(jax.jit(documented))
    assert type(jaxobs.jit(static_argnames="z")(documented)) is type(jax.jit(documented))
    assert jaxobs.instrument(documented) is documented
    assert jaxobs.snapshot().functions == ()


class Model:
    """All the ways in which a class can hold a function."""

    factor = 3

    def __init__(self, w: float = 2.0) -> None:
        self.w = w

    @functools.partial(jaxobs.jit, static_argnums=0)
    def step(self, x: Any) -> Any:
        """Multiplies."""
        return self.w * x

    def plain(self, x: Any) -> Any:
        return x

    @classmethod
    @functools.partial(jaxobs.jit, static_argnums=0)
    def of_class(cls, x: Any) -> Any:
        return cls.factor * x

    @staticmethod
    @jaxobs.jit
    def of_nobody(x: Any) -> Any:
        return x + 1

    @property
    @functools.partial(jaxobs.jit, static_argnums=0)
    def doubled(self) -> Any:
        return jnp.float32(2 * self.w)

    aot = jaxobs.instrument(jax.jit(lambda x: x + 5).lower(jnp.float32(0)).compile())
    plain_partial = functools.partial(lambda *given: len(given))
    partial = jaxobs.instrument(plain_partial)
    wrapped_static = jaxobs.instrument(staticmethod(lambda x: x + 7))
    function = jaxobs.instrument(lambda self, x: self.w + x)


class Child(Model):
    """Inherits, overrides, calls the parent's."""

    factor = 4

    @functools.partial(jaxobs.jit, static_argnums=0)
    def step(self, x: Any) -> Any:
        return super().step(x) + 1


def test_methods_of_every_kind() -> None:
    model, child = Model(), Child()
    assert model.step(1.0) == Model.step(model, 1.0) == model.step.lower(model, 1.0).compile()(1.0) == 2.0
    assert Model.of_class(1.0) == model.of_class(1.0) == 3.0
    assert (child.step(1.0), child.of_class(1.0)) == (3.0, 4.0)
    assert model.of_nobody(1) == Model.of_nobody(1) == 2
    assert model.doubled == 4.0
    assert isinstance(model.step, types.MethodType) and model.step == model.step
    assert model.step.__self__ is model and model.step.__func__ is Model.__dict__["step"]
    assert model.step.__doc__ == "Multiplies."
    assert list(inspect.signature(model.step).parameters) == ["x"]


def test_what_does_not_bind_is_not_bound() -> None:
    model = Model()
    assert model.aot(jnp.float32(0)) == Model.aot(jnp.float32(0)) == 5
    assert model.partial(0) == model.plain_partial(0) and Model.partial(0) == 1  # Python 3.14 binds it
    assert model.aot is Model.aot is Model.__dict__["aot"]
    assert model.wrapped_static(0) == Model.wrapped_static(0) == 7
    assert model.function(1) == Model.function(model, 1) == 3.0


def test_field_of_a_dataclass() -> None:
    @dataclasses.dataclass
    class Config:
        activation: Any = wrapper_module.decorated

    config = Config()
    assert config.activation(2) == 4
    assert dataclasses.replace(config).activation is config.activation


def test_binding_of_libraries() -> None:
    class Net(nnx.Module):
        def __init__(self) -> None:
            self.w = nnx.Param(jnp.ones(3))

        @jaxobs.instrument
        @nnx.jit
        def __call__(self, x: Any) -> Any:
            return (self.w[...] * x).sum()

    class Module(eqx.Module):
        w: Any

        @jaxobs.instrument
        @eqx.filter_jit
        def __call__(self, x: Any) -> Any:
            return (self.w * x).sum()

        @jaxobs.instrument
        def method(self, x: Any) -> Any:
            return self.w + x

    assert Net()(2.0) == 6.0
    module = Module(jnp.ones(3))
    assert module(2.0) == 6.0
    assert jax.grad(lambda m: m(2.0))(module).w.tolist() == [2.0, 2.0, 2.0]
    assert module.method(1.0).tolist() == [2.0, 2.0, 2.0]
    # A bound method of a module is a pytree: the module's arrays are its leaves.
    assert len(jax.tree.leaves(module.method)) == len(jax.tree.leaves(module)) == 1


def test_names_of_arguments_are_the_users() -> None:
    def takes(self: Any = 0, fun: Any = 0, args: Any = 0, kwargs: Any = 0, name: Any = 0, instance: Any = 0) -> Any:
        return self, fun, args, kwargs, name, instance

    for wrap in (jax.jit, jaxobs.jit, jaxobs.instrument):
        function = wrap(takes)
        every = function(self=1, fun=2, args=3, kwargs=4, name=5, instance=6)
        assert [int(each) for each in every] == [1, 2, 3, 4, 5, 6]
        assert [int(each) for each in function(1, name=5)] == [1, 0, 0, 0, 5, 0]
        assert [int(each) for each in function()] == [0] * 6


def options() -> Iterator[tuple[dict[str, Any], Callable[..., Any], tuple[Any, ...], dict[str, Any]]]:
    split = NamedSharding(Mesh(np.array(jax.devices()), ("a",)), P("a"))
    yield {}, lambda x, y=1: x + y, (ONES,), {"y": 2}
    yield {"static_argnums": 1}, plus, (ONES, "ab"), {}
    yield {"static_argnums": (-1,)}, plus, (ONES, "ab"), {}
    yield {"static_argnames": ("n",)}, plus, (ONES,), {"n": "ab"}
    for option in ({"in_shardings": split}, {"out_shardings": split}, {"inline": True}):
        yield option, lambda x: x + 1, (ONES,), {}
    yield {"keep_unused": True}, lambda x, y: x + 1, (ONES, ONES), {}
    yield {"compiler_options": {"xla_embed_ir_in_executable": True}}, lambda x: x + 1, (ONES,), {}


@pytest.mark.parametrize("number", range(9))
def test_every_option_of_jit_is_handed_on(number: int) -> None:
    given, fun, args, kwargs = list(options())[number]
    bare, ours = jax.jit(fun, **given), jaxobs.jit(fun, **given)
    for _ in range(3):
        expected, actual = bare(*args, **kwargs), ours(*args, **kwargs)
    assert actual.tolist() == expected.tolist()
    assert actual.sharding == expected.sharding
    assert ours._cache_size() == bare._cache_size()
    assert ours.lower(*args, **kwargs).as_text() == bare.lower(*args, **kwargs).as_text()
    if "compiler_options" not in given:
        jaxprs = [str(jax.make_jaxpr(lambda each=each: each(*args, **kwargs))()) for each in (bare, ours)]
        assert jaxprs[0] == jaxprs[1]


@pytest.mark.parametrize("option", [{"donate_argnums": 0}, {"donate_argnames": "x"}], ids=str)
def test_donation_donates(option: dict[str, Any]) -> None:
    ours = jaxobs.jit(lambda x: x + 1, **option)
    x = jnp.ones(8)
    reference = weakref.ref(x)
    ours(x)
    assert x.is_deleted()
    del x
    assert reference() is None


def test_ahead_of_time() -> None:
    x, ours = jax.ShapeDtypeStruct((), jnp.int32), jaxobs.jit(documented)

    def made(f: Any) -> tuple[Any, ...]:
        return f.lower(x).as_text(), str(f.trace(x).jaxpr), f.eval_shape(x), jax.eval_shape(f, x)

    assert made(ours) == made(jax.jit(documented))
    assert ours.lower(x).compile()(1) == ours(1) == 6
    assert ours._cache_size() == 1
    ours.clear_cache()
    assert ours._cache_size() == 0 and ours(1) == 6


def test_exported_calls(fresh: None) -> None:
    exported = jax.export.export(jaxobs.jit(lambda x: x + 1))(jnp.float32(0))
    ours = jaxobs.instrument(exported.call, name="exported")
    assert ours(jnp.float32(1)) == 2
    assert jax.jit(ours)(jnp.float32(1)) == 2
    assert calls("exported") == 1


def test_instrumented_libraries(fresh: None) -> None:
    def add(x: Any) -> Any:
        return x + 1

    made = {
        "nnx": nnx.jit(add), "filter_jit": eqx.filter_jit(add), "filter_vmap": eqx.filter_vmap(add),
        "pmap": jax.pmap(add), "compiled": jax.jit(add).lower(ONES).compile(),
    }  # fmt: skip
    for name, original in made.items():
        ours = jaxobs.instrument(original, name=name)
        for _ in range(3):
            assert ours(ONES).tolist() == original(ONES).tolist()
        assert calls(name) == 3
        assert plain_text(repr(ours)) == plain_text(repr(original))
        assert dir(ours) == dir(original)
    assert jaxobs.instrument(made["compiled"]).as_text() == made["compiled"].as_text()
    assert jaxobs.instrument(made["pmap"]).lower(ONES).as_text() == made["pmap"].lower(ONES).as_text()


def outcome(act: Callable[[Any], Any], value: Any) -> Any:
    try:
        return float(act(value)(2.0))
    except Exception as error:
        return type(error)


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def cloudpickled(value: Any) -> Any:
    return cloudpickle.loads(cloudpickle.dumps(value))


@pytest.mark.parametrize("act", [pickled, cloudpickled, copy.copy, copy.deepcopy])
@pytest.mark.parametrize(
    "original",
    [
        jax.jit(wrapper_module.double),
        jax.jit(lambda x: x * 2),
        wrapper_module.double,
        functools.partial(wrapper_module.double),
        lambda x: x * 2,
        eqx.filter_jit(wrapper_module.double),
        nnx.jit(wrapper_module.double),
        jax.pmap(wrapper_module.double),
        jax.jit(wrapper_module.double).lower(1.0).compile(),
        Model().step,
        np.sqrt,
    ],
    ids=["jit", "jit lambda", "function", "partial", "lambda", "eqx", "nnx", "pmap", "aot", "method", "ufunc"],
)
def test_pickles_and_copies_where_the_original_does(act: Callable[[Any], Any], original: Any) -> None:
    assert outcome(act, jaxobs.instrument(original)) == outcome(act, original)


def test_decorated_globals() -> None:
    assert pickled(wrapper_module.plain) is wrapper_module.plain
    refused = []
    for function in (wrapper_module.bare, wrapper_module.decorated):
        with pytest.raises(pickle.PicklingError) as caught:
            pickle.dumps(function)
        refused.append(plain_text(str(caught.value)).replace(function.__name__, "name"))
        assert cloudpickled(function)(2) == 4
    assert refused[0] == refused[1]


def test_a_pickle_counts_under_its_label(fresh: None) -> None:
    ours = jaxobs.instrument(functools.partial(wrapper_module.double), name="kept")
    pickled(ours)(1), cloudpickled(ours)(1)
    assert calls("kept") == 2


def transformed(f: Callable[..., Any]) -> dict[str, Callable[[], Any]]:
    """Every way in which JAX takes a function apart, applied to `f`, which maps floats to floats."""
    x, xs = jnp.float32(0.5), jnp.arange(8, dtype=jnp.float32)
    mesh = Mesh(np.array(jax.devices()), ("a",))

    @jax.custom_jvp
    def with_jvp(x: Any) -> Any:
        return f(x)

    with_jvp.defjvp(lambda primals, tangents: (f(primals[0]), 2 * tangents[0]))

    @jax.custom_vjp
    def with_vjp(x: Any) -> Any:
        return f(x)

    with_vjp.defvjp(lambda x: (f(x), x), lambda residual, g: (g * residual,))
    return {
        "call": lambda: f(x), "jit": lambda: jax.jit(f)(x),
        "jit in jit": lambda: jax.jit(lambda y: jax.jit(f)(y) + f(y))(x), "vmap": lambda: jax.vmap(f)(xs),
        "vmap in_axes": lambda: jax.vmap(lambda a, b: f(a) * b, in_axes=(0, None))(xs, x),
        "grad": lambda: jax.grad(f)(x), "value_and_grad": lambda: jax.value_and_grad(f)(x),
        "vmap of grad": lambda: jax.vmap(jax.grad(f))(xs), "jit of grad": lambda: jax.jit(jax.grad(f))(x),
        "jvp": lambda: jax.jvp(f, (x,), (x,)), "vjp": lambda: jax.vjp(f, x)[1](x),
        "linearize": lambda: jax.linearize(f, x)[1](x), "jacfwd": lambda: jax.jacfwd(f)(x),
        "jacrev": lambda: jax.jacrev(f)(x), "hessian": lambda: jax.hessian(f)(x),
        "scan": lambda: jax.lax.scan(lambda c, y: (f(c), f(y)), x, xs),
        "cond": lambda: jax.lax.cond(x > 0, f, lambda y: y, x), "switch": lambda: jax.lax.switch(1, [f, f], x),
        "while_loop": lambda: jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, f(c[1])), (0, x)),
        "fori_loop": lambda: jax.lax.fori_loop(0, 3, lambda i, c: f(c), x), "map": lambda: jax.lax.map(f, xs),
        "associative_scan": lambda: jax.lax.associative_scan(lambda a, b: f(a) + f(b), xs),
        "remat": lambda: jax.grad(jax.checkpoint(f))(x), "custom_jvp": lambda: (with_jvp(x), jax.grad(with_jvp)(x)),
        "custom_vjp": lambda: (with_vjp(x), jax.grad(with_vjp)(x)),
        "shard_map": lambda: jax.shard_map(f, mesh=mesh, in_specs=P("a"), out_specs=P("a"))(xs),
        "jit of shard_map": lambda: jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("a"), out_specs=P("a")))(xs),
        "pmap": lambda: jax.pmap(f)(xs),
        "pure_callback": lambda: jax.pure_callback(lambda y: np.asarray(f(jnp.asarray(y))), x, x),
        "eval_shape": lambda: jax.eval_shape(f, x), "closure_convert": lambda: jax.closure_convert(f, x)[0](x),
        "named_call": lambda: jax.named_call(f, name="n")(x), "disable_jit": lambda: no_jit(f, x),
        "linear_transpose": lambda: jax.linear_transpose(lambda y: 2 * y, x)(f(x)),
    }  # fmt: skip


def no_jit(f: Callable[..., Any], x: Any) -> Any:
    with jax.disable_jit():
        return f(x)


def bend(x: Any) -> Any:
    return jnp.sin(x) * x


UNSURE = ("associative_scan", "custom_jvp", "custom_vjp", "closure_convert")
"""Ways that call it several times, or as they like."""
TRACED_ONLY = [
    "jit", "jit in jit", "jit of grad", "scan", "cond", "switch", "while_loop", "fori_loop", "map", "remat",
    "jit of shard_map", "pmap", "eval_shape",
]  # fmt: skip


@pytest.mark.parametrize("way", list(transformed(bend)))
def test_inside_every_transformation(way: str, fresh: None) -> None:
    """Results are those of `jax.jit`, bit for bit, once and again.

    A call that executes counts once, also under eager `vmap` and `grad`; one that is traced into another does not.
    """
    made = {"jit": jaxobs.jit(bend, name="jit"), "instrument": jaxobs.instrument(jax.jit(bend), name="instrument")}
    bare, *ours = (transformed(f)[way] for f in (jax.jit(bend), *made.values()))
    for _ in range(2):
        expected = bare()
        for actual in [act() for act in ours]:
            assert jax.tree.structure(actual) == jax.tree.structure(expected)
            jax.tree.map(np.testing.assert_array_equal, *(jax.tree.map(shown, each) for each in (actual, expected)))
    if way not in UNSURE:
        assert {calls(name) for name in made} == {0 if way in TRACED_ONLY else 2}


def shown(leaf: Any) -> Any:
    return str(leaf) if isinstance(leaf, jax.ShapeDtypeStruct) else np.asarray(leaf)


@pytest.mark.parametrize("source_info", [False, True])
def test_same_jaxpr(source_info: bool) -> None:
    def program(f: Any) -> Any:
        def scan(x: Any) -> Any:
            return jax.lax.scan(lambda c, y: (f(c), jax.grad(f)(y)), x, jnp.ones(3))

        return jax.make_jaxpr(scan)(jnp.float32(1))

    texts = [program(jit(bend)).pretty_print(source_info=source_info, name_stack=True) for jit in (jax.jit, jaxobs.jit)]
    assert texts[0] == texts[1]
    assert "jaxobs" not in texts[1].replace(str(ROOT), "")


@pytest.mark.parametrize("outer", [lambda f: f, lambda f: jax.jit(lambda x: f(x) + jax.grad(f)(x))])
def test_same_lowered_program_with_its_locations(outer: Callable[[Any], Any]) -> None:
    bare, ours = (str(outer(jit(bend)).lower(jnp.float32(1)).as_text(debug_info=True)) for jit in (jax.jit, jaxobs.jit))
    assert "bend" in bare
    assert ours == bare
    assert "jaxobs/" not in ours.replace(str(ROOT), "")


def test_recursion() -> None:
    @functools.partial(jaxobs.jit, static_argnums=1)
    def power(x: Any, n: int) -> Any:
        return x if n == 1 else x * power(x, n - 1)

    assert [int(power(2, n)) for n in range(1, 5)] == [2, 4, 8, 16]


def test_async_code(fresh: None) -> None:
    ours = jaxobs.jit(lambda x: x + 1, name="async")

    async def one(n: int) -> Any:
        return ours(n) + await asyncio.to_thread(ours, n)

    async def several() -> list[Any]:
        return await asyncio.gather(*(one(n) for n in range(8)))

    assert [int(each) for each in asyncio.run(several())] == [2 * n + 2 for n in range(8)]
    assert calls("async") == 16


def test_a_traced_call_that_returns_an_array_does_not_count(fresh: None) -> None:
    """While another function is traced, an inlined function may return a real array: that is no sign of a call."""
    constant = jnp.ones(3)
    inlined = jaxobs.jit(lambda: constant, inline=True, name="inlined")
    plain = jaxobs.instrument(lambda: constant, name="plain")
    seen = []

    def outer(x: Any) -> Any:
        seen.extend([type(inlined()), type(plain())])
        return x

    jax.jit(outer)(1.0)
    assert type(constant) in seen
    assert calls("inlined") == calls("plain") == 0
    inlined(), plain()
    assert calls("inlined") == calls("plain") == 1


@pytest.mark.parametrize("result", [1, None, (1, 2), {"a": [1]}, ()], ids=repr)
def test_every_kind_of_result_counts(result: Any, fresh: None) -> None:
    ours = jaxobs.jit(lambda: jax.tree.map(jnp.asarray, result), name="any")
    for _ in range(3):
        ours()
    assert calls("any") == 3


def test_calls_from_callbacks_count(fresh: None) -> None:
    ours = jaxobs.jit(lambda x: x + 1, name="called back")

    def back(x: Any) -> Any:
        return np.asarray(ours(np.asarray(x)))

    x = jnp.float32(1)
    jax.block_until_ready(jax.jit(lambda x: jax.pure_callback(back, x, x))(x))
    jax.debug.callback(back, x)
    jax.effects_barrier()
    assert calls("called back") == 2


def test_without_a_way_to_tell_every_call_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("jax._src.core.trace_ctx")
    monkeypatch.delattr("jax._src.core.trace_state_strong_ref", raising=False)
    state = internals.trace_state()
    assert state.executes()
    assert state.current(state.holder) is state.eval_trace


def test_threads_lose_nothing(fresh: None) -> None:
    """Sixteen threads that start on a function not yet compiled: each call and each error is counted.

    That they race for the last timed call neither stops nor starts the timing for good.
    """
    ours = jaxobs.jit(lambda x: x + 1, name="threads")
    bad = jaxobs.instrument(raises, name="bad")
    x = jnp.float32(1)

    def work(_: int) -> None:
        for _ in range(2000):
            ours(x)
        for _ in range(200):
            with pytest.raises(ValueError, match="always"):
                bad()

    at_once(16, work, interval=OFTEN)
    rows = {each.name: each for each in jaxobs.snapshot().functions}
    assert (rows["bad"].calls, rows["bad"].errors) == (3200, {"ValueError": 3200})
    assert rows["threads"].calls == 32_000 and 1024 <= sum(rows["threads"].dispatch.counts) < 32_000  # type: ignore[union-attr]
    assert store.current().call_stats("threads").timed <= 0


def raises() -> None:
    raise ValueError("always")
