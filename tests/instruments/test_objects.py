"""`instrument` of an object: its calls are counted, and everything else about it is as it was."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections import UserList
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from flax import nnx

import jaxobs

pytestmark = pytest.mark.usefixtures("fresh")

T = TypeVar("T")


class Model(UserList[int]):
    """Layers that can be called one after the other, with special methods of most sorts."""

    entered = 0

    def __call__(self, x: int) -> int:
        return x + sum(self.data)

    def __enter__(self) -> Any:
        self.entered += 1
        return self

    def __exit__(self, *error: object) -> bool:
        self.entered -= 1
        return True

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *error: object) -> None:
        return None

    def __bool__(self) -> bool:
        return bool(self.data)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.data))

    def __matmul__(self, other: int) -> int:
        return other * len(self)

    __rmatmul__ = __matmul__

    def __float__(self) -> float:
        return float(sum(self.data))

    def __index__(self) -> int:
        return len(self)

    def __str__(self) -> str:
        return f"{len(self)} layers"

    def __format__(self, how: str) -> str:
        return f"{len(self)} layers {how}"


def calls(name: str) -> int | None:
    return next((each.calls for each in jaxobs.snapshot().functions if each.name == name), None)


def test_an_object_keeps_its_special_methods() -> None:
    """Length, items, iteration, blocks, truth, comparison, arithmetic, text; and calls in all that are counted."""
    inner = Model([1, 2, 3])
    model: Any = jaxobs.instrument(inner, name="model")
    assert isinstance(model, Model) and model.__class__ is Model
    assert (len(model), model[0], model[1:], list(model), list(reversed(model))) == (3, 1, [2, 3], [1, 2, 3], [3, 2, 1])
    assert 2 in model and 4 not in model and max(*model) == 3
    model[0] = 4
    del model[1]
    assert inner.data == [4, 3]
    with model as entered:
        assert entered is model and inner.entered == 1
        assert entered(1) == 8
        raise ValueError  # `__exit__` takes it
    assert inner.entered == 0

    async def block() -> bool:
        async with model as entered:
            return entered is model

    assert asyncio.run(block())
    assert model and not jaxobs.instrument(Model())
    other = jaxobs.instrument(Model([4, 3]))
    assert model == other == inner and inner == model and hash(model) == hash(inner)
    assert model != jaxobs.instrument(Model()) and model != 3
    assert jaxobs.instrument(Model()) < model < Model([5]) and {model: 1}[inner] == 1
    assert (model + other).data == [4, 3, 4, 3] and model @ 5 == 5 @ model == 10
    before = model
    model += Model([5])
    assert model is before and inner.data == [4, 3, 5]
    assert (float(model), "abcdef"[model], str(model), f"{model:deep}") == (12.0, "d", "3 layers", "3 layers deep")
    assert repr(model) == repr(inner)
    assert calls("model") == 1
    for missing in (lambda: abs(model), lambda: model > object(), lambda: ~model):
        with pytest.raises(TypeError):
            missing()


def test_an_object_can_be_copied_and_pickled() -> None:
    model: Any = jaxobs.instrument(Model([1, 2]), name="kept")
    for again in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert again == model and again(1) == 4 and len(again) == 2
    assert calls("kept") == 3
    deep = copy.deepcopy(model)
    deep[0] = 7
    assert model[0] == 1


def test_what_an_object_lacks_it_lacks() -> None:
    class Plain:
        def __call__(self) -> int:
            return 1

    model: Any = jaxobs.instrument(Plain())
    for name in ("__len__", "__iter__", "__getitem__", "__enter__", "__next__", "__bool__", "__await__", "__index__"):
        assert not hasattr(model, name), name
    assert model and model == model and model != jaxobs.instrument(Plain())
    with pytest.raises(TypeError, match="not iterable"):
        iter(model)

    class Equal:
        def __eq__(self, other: object) -> bool:
            return True

        def __call__(self) -> None: ...

    with pytest.raises(TypeError, match="unhashable type: 'Equal'"):
        hash(jaxobs.instrument(Equal()))


def test_an_iterator_and_a_pytree_that_can_be_called() -> None:
    """Steps of an iterator; leaves, structure and transformations of modules, which keep what libraries give them."""

    class Counter:
        number = 0

        def __call__(self) -> int:
            return self.number

        def __iter__(self) -> Any:
            return self

        def __next__(self) -> int:
            self.number += 1
            if self.number > 3:
                raise StopIteration
            return self.number

    counter: Any = jaxobs.instrument(Counter(), name="counter")
    assert iter(counter) is counter and next(counter) == 1 and list(counter) == [2, 3] and counter() == 4

    class Layer(eqx.Module):
        weight: jax.Array

        def __call__(self, x: Any) -> Any:
            return self.weight * x

        def __len__(self) -> int:
            return len(self.weight)

    layer: Any = jaxobs.instrument(Layer(jnp.ones(3)), name="layer")
    assert len(layer) == 3 and layer == jaxobs.instrument(Layer(jnp.ones(3)), name="layer")
    ((path, leaf),) = jax.tree_util.tree_leaves_with_path(layer)
    assert isinstance(layer, eqx.Module) and (jax.tree_util.keystr(path), leaf.shape) == (".weight", (3,))
    doubled = jax.tree.map(lambda leaf: 2 * leaf, layer)
    assert type(doubled) is type(layer) and len(doubled) == 3 and doubled(1.0).sum() == 6.0
    assert jax.tree.structure(doubled) == jax.tree.structure(layer)
    gradient = eqx.filter_grad(lambda layer: layer(2.0).sum())(layer)
    assert gradient.weight.tolist() == [2.0, 2.0, 2.0]

    stack: Any = jaxobs.instrument(nnx.Sequential(nnx.Linear(2, 2, rngs=nnx.Rngs(0)), jnp.tanh), name="stack")
    assert stack(jnp.ones((1, 2))).shape == (1, 2) and calls("stack") == 1
    assert isinstance(stack, nnx.Module)


class Base:
    """A class at the top of a module."""

    made = 0

    def __init__(self, x: int = 0) -> None:
        self.x = x
        type(self).made += 1


Wrapped: Any = jaxobs.instrument(Base, name="Base")


def test_a_class_can_be_derived_from_and_asked_about_its_instances() -> None:
    wrapped: Any = jaxobs.instrument(Base, name="made")

    class Child(wrapped):  # type: ignore[misc]
        def __init__(self, x: int) -> None:
            super().__init__(x + 1)

    made, child = wrapped(1), Child(1)
    assert type(made) is Base and isinstance(made, wrapped) and isinstance(child, wrapped) and child.x == 2
    assert not isinstance(3, wrapped)
    assert Child.__mro__ == (Child, Base, object)
    assert issubclass(Child, wrapped) and issubclass(wrapped, Base) and issubclass(wrapped, wrapped)
    assert not issubclass(int, wrapped) and not issubclass(wrapped, int)
    assert issubclass(Child, (int, wrapped)) and isinstance(child, wrapped | int)
    assert calls("made") == 1
    assert wrapped == jaxobs.instrument(Base) and hash(wrapped) == hash(Base)
    assert pickle.loads(pickle.dumps(Wrapped(3))).x == 3
    assert pickle.loads(pickle.dumps(Wrapped)) == Wrapped

    class Box(Generic[T]):
        pass

    box: Any = jaxobs.instrument(Box)

    class IntBox(box[int]):  # type: ignore[misc]
        pass

    assert isinstance(IntBox(), box)
    with pytest.raises(TypeError, match="not subscriptable"):
        wrapped[int]


def test_data_keeps_special_methods_too() -> None:
    inner = Model([1, 2])
    batches: Any = jaxobs.data(inner)
    assert (len(batches), batches[1], 2 in batches, bool(batches), list(batches)) == (2, 2, True, True, [1, 2])
    assert list(reversed(batches)) == [2, 1] and batches == inner and batches == jaxobs.data(Model([1, 2]))
    assert hash(batches) == hash(inner) and (batches + batches).data == [1, 2, 1, 2]
    batches[0] = 5
    assert inner.data == [5, 2] and batches(1) == 8
    with batches as entered:
        assert entered is batches
