"""The engine that says why: signatures made by hand and by calls, without compiling anything."""

from __future__ import annotations

import functools
import gc
from dataclasses import dataclass
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from jaxobs import internals
from jaxobs.facts.compilations import CAUSES
from jaxobs.internals import Call, Miss
from jaxobs.reasons import cures, explanation, signature
from jaxobs.reasons.explanation import Explainer
from jaxobs.reasons.history import History


def called(fun, *args, static_argnums=(), **kwargs) -> Call:
    options = SimpleNamespace(static_argnums=static_argnums, static_argnames=())
    return internals.called(Miss(fun=fun, jit_info=options, args=args, kwargs=kwargs))


def explain(explainer, fun, *args, **options):
    """Returns the explainer's explanation of a miss of that call."""
    call = called(fun, *args, **options)
    return explainer.explain("f", call, signature.take(call))


def why(*calls):
    """The explanation of the last of these calls' misses."""
    explainer = Explainer()
    return [explain(explainer, f, *call) for call in calls][-1]


def f(state, batch=None, *rest):
    """Something to name arguments after."""


X = np.zeros((4, 3), np.float32)


@pytest.mark.parametrize(
    ("before", "after", "path", "what"),
    [
        (({"w": X},), ({"w": X[:2]},), "state['w']", "shape"),
        ((X, {"image": X}), (X, {"image": X.astype(np.int32)}), "batch['image']", "dtype"),
        (([X, (X, 1.0)],), ([X, (X, np.float32(1))],), "state[1][1]", "weak_type"),
        ((X, X, X, X), (X, X, X, X[:1]), "rest[1]", "shape"),
    ],
)
def test_paths_are_as_the_user_wrote_them(before, after, path, what) -> None:
    explained = why(before, after)
    assert [(change.path, change.what) for change in explained.changes] == [(path, what)]
    assert f"`{path}` {explained.changes[0].before} -> {explained.changes[0].after}" in explained.reason


def test_several_changes_are_all_listed() -> None:
    explained = why(*([{f"x{n}": each for n in range(7)}] for each in (X, X[:2])))
    assert (len(explained.changes), explained.cause, explained.reason.count(" -> ")) == (7, "shape", 4)
    assert "3 more differences" in explained.reason


@functools.partial(jax.tree_util.register_dataclass, data_fields=["x"], meta_fields=["meta"])
@dataclass
class Node:
    x: object
    meta: object


def test_metadata_that_differs_is_quoted_where_it_differs() -> None:
    """A flag deep in a pytree's metadata is shown, not the whole tree."""
    explained = why(*([Node(X, ("m" * 300, train))] for train in (True, False)))
    assert explained.cause == "structure"
    (change,) = explained.changes
    assert "True" in change.before and "False" in change.after
    assert len(change.before) <= signature.MOST_REPR


def test_static_values_and_metadata_can_be_kept_out() -> None:
    """With the setting off, a reason shows the type and not the value."""
    taken = signature.take(called(f, "secret", static_argnums=(0,)), static_values=False)
    assert taken is not None
    assert str(taken.leaves[0]) == "str"
    explainer = Explainer()
    for secret in ("hunter2", "hunter3"):
        call = called(f, Node(X, secret))
        explained = explainer.explain("f", call, signature.take(call, static_values=False))
    assert explained.cause == "structure"
    assert "hunter" not in f"{explained}"


class Model:
    def step(self, x):
        """A method."""


def test_partials_methods_and_wrappers_are_one_function() -> None:
    """A wrapper that is made again around one function is a new object of the same function."""
    for make in (lambda: functools.partial(f, 1), lambda: Model().step, lambda: functools.wraps(f)(lambda x: x)):
        explainer = Explainer()
        causes = [explain(explainer, make(), X).cause for _ in range(3)]
        assert causes == ["first_call", "new_function", "new_function"]


def test_a_bound_method_read_again_is_the_same_function() -> None:
    """Python makes a bound method anew at each access; JAX takes equal ones for one."""
    model, explainer = Model(), Explainer()
    one = model.step
    explain(explainer, one, X)
    assert explain(explainer, model.step, X[:1]).cause == "shape"


def test_an_id_that_comes_back_is_no_old_friend() -> None:
    """A function object at the address of a dead one is new."""
    explainer = Explainer()
    causes = []
    for _ in range(4):
        g = lambda x: x  # noqa: E731
        causes.append(explain(explainer, g, X).cause)
        del g
        gc.collect()
    assert causes == ["first_call"] + ["new_function"] * 3


@pytest.mark.parametrize(
    ("phases", "part"),
    [
        ({"trace", "lower", "compile"}, "retraced"),
        ({"lower", "compile"}, "lowered again"),
        ({"compile"}, "devices changed"),
    ],
)
def test_out_of_sight_the_class_is_told_by_the_phases(phases, part) -> None:
    """Without arguments the cause is unknown, and the sentence says what kind it must be."""
    explainer = Explainer()
    out_of_sight = Call(f, f, None, {})
    explainer.explain("f", out_of_sight, None)
    explained = explainer.explain("f", out_of_sight, None, phases=frozenset(phases))
    assert explained.cause == "unknown"
    assert part in explained.reason
    if "lower" in phases and "trace" not in phases:
        assert "a sharding, a placement or a layout changed" in explained.reason


def test_arguments_that_look_alike_show_no_sharding_that_changed() -> None:
    """A reason names nothing that the evidence does not show."""
    explainer, call = Explainer(), Call(f, f, (1.0,), {})
    for _ in range(2):
        explained = explainer.explain("f", call, signature.take(call), phases=frozenset({"lower", "compile"}))
    assert explained.cause == "unknown" and "sees no difference" in explained.reason
    assert "sharding" not in explained.reason


def test_memory_is_bounded() -> None:
    explainer = Explainer(History(most_programs=100))
    for n in range(10_000):
        explainer.explain(f"f{n}", Call(None, None, None, {}), None)
    assert len(explainer.history) == 100


def test_every_cause_is_one_of_the_contract() -> None:
    assert set(cures._GENERAL) == set(CAUSES) - {"first_call", "unknown"}
    assert {*explanation._ORDER, "cache_cleared"} == set(cures._GENERAL)
    assert set(cures._CURES) == set(explanation._ORDER) - {"new_function"}


def test_numpy_and_jax_arrays_have_one_signature() -> None:
    """NumPy's float64, which JAX makes float32, is no difference either."""
    import jax.numpy as jnp

    taken = [signature.take(called(f, x)) for x in (np.zeros(3), np.zeros(3, np.float32), jnp.zeros(3))]
    assert taken[0] == taken[1] == taken[2]


def test_hostile_values_are_told_apart_all_the_same() -> None:
    """Values that raise in `__repr__`, `__eq__` or `__getattr__` are no reason to say nothing."""

    class Hostile:
        def __init__(self, number: int) -> None:
            vars(self)["number"] = number

        def __getattr__(self, name: str) -> None:
            raise RuntimeError(name)

        def __repr__(self) -> str:
            raise ValueError("no repr")

        def __eq__(self, other: object) -> bool:
            return vars(self)["number"] == vars(other)["number"]

        def __hash__(self) -> int:
            return 5

    class Unequal(Hostile):
        def __eq__(self, other: object) -> bool:
            raise RuntimeError("never compare")

        __hash__ = Hostile.__hash__

    for kind in (Hostile, Unequal):
        explainer = Explainer()
        values = [kind(number) for number in range(2)]  # JAX keeps them alive, as keys of its caches
        for value in values:
            explained = explain(explainer, f, X, value, static_argnums=(1,))
        assert (explained.cause, explained.changes[0].path) == ("static_argument", "batch")
    explained = why([Node(X, "m")], [Node(X, Hostile(1))], [Node(X, Hostile(2))])
    assert (explained.cause, explained.changes[0].path) == ("structure", "state")


def test_metadata_is_compared_without_its_equality() -> None:
    """Keys of dictionaries and items of tuples are compared so, too; who looks equal and is another object is named."""

    @dataclass(frozen=True)
    class Counting:
        number: int

        def __eq__(self, other: object) -> bool:
            raise SystemExit

        __repr__ = __lt__ = __eq__  # type: ignore[assignment]

        def __hash__(self) -> int:
            return self.number

    for made in (Counting, lambda number: (Counting(number), "m")):
        nodes = [Node(X, made(number)) for number in (1, 1, 2, 3)]
        assert why(*([node] for node in nodes)).changes[0].path == "state"
        assert why([nodes[0]], [nodes[1]]).cause == "structure"
        assert why([nodes[0]], [nodes[0]]).cause == "unknown"
    wide = {f"{number:05}": X for number in range(5000)}
    assert why([wide, nodes[0]], [wide, nodes[-1]]).changes[0].path == "batch"
    gone, come = why([{Counting(1): X}], [{Counting(2): X}]).changes
    assert gone.path.endswith("Counting(number=1)]") and come.path.endswith("Counting(number=2)]")


@pytest.mark.parametrize(
    ("before", "after", "path", "texts"),
    [
        ({"a": X}, {"b": X}, "state['a']", ("float32[4,3]", "absent")),
        ([X, X], [X], "state[1]", ("float32[4,3]", "absent")),
        ([X], {"a": X}, "state", ("a list of 1", "a dict of 1")),
        ([X, None], [X, X], "state[1]", ("None", "float32[4,3]")),
        ({"a": [X, {"b": (X,)}]}, {"a": [X, {"b": X}]}, "state['a'][1]['b']", ("a tuple of 1", "float32[4,3]")),
    ],
)
def test_trees_are_compared_where_they_part(before, after, path, texts) -> None:
    explained = why([before], [after])
    first = explained.changes[0]
    assert (explained.cause, first.path, first.before, first.after) == ("structure", path, *texts)


def test_a_cell_that_runs_again_makes_its_functions_again() -> None:
    """The first new object of each run is put down to that, with other advice; a second one in a run is a loop."""
    explainer = explanation.Explainer()

    def made(cell: int | None) -> explanation.Explanation:
        def g(x):
            return x

        return explainer.explain("g", called(g, X), None, cell=cell)

    explained = [made(each) for each in (4, 5, 5, 6, None, None)]
    assert [each.cause for each in explained] == ["first_call"] + ["new_function"] * 5
    assert [each.by_rerun for each in explained] == [False, True, False, True, False, False]
    assert "Rerunning a cell" in explained[1].reason and "loop" not in explained[1].reason
    assert "outside the loop" in explained[2].reason
