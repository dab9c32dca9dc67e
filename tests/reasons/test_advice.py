"""Advice fits the facts: each piece is left out where its preconditions do not hold, and a checker refuses the rest."""

import dataclasses
import functools
import importlib
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.made_by_hand import compilation

import jaxobs
from jaxobs.facts.compilations import Change
from jaxobs.facts.events import as_event
from jaxobs.internals import source_files
from jaxobs.reasons import cures
from tools.sentences import refuted

WEAK = "{weak_type=True}"

pytestmark = pytest.mark.usefixtures("fresh")


def told(change: Change, **more: Any) -> str:
    advice = cures.cure(change.what, [change], **more)
    event = compilation("train.step", cause=change.what, reason=advice, changes=(change,), eager=False)
    assert refuted(as_event(event)) == []
    return advice


def rows(kind: str) -> list[tuple[Change, int, str]]:
    """Returns the rows of one kind in advice.txt: a change, how many compilations came earlier, and advice."""
    table = [line.split(" | ") for line in Path(__file__).with_name("advice.txt").read_text().splitlines()]
    return [
        (Change(path, what, before, after), int(earlier), advice)
        for _, what, path, before, after, earlier, advice in (row for row in table if row[0] == kind)
    ]


@pytest.mark.parametrize(("change", "earlier", "says"), rows("gets"))
def test_advice_fits_the_facts(change: Change, earlier: int, says: str) -> None:
    assert says in told(change, earlier=earlier)


def test_several_arguments_are_spoken_of_as_several() -> None:
    """Brax's evaluation gets seven rewards and metrics that were weakly typed at first."""
    changes = [Change(path, "weak_type", f"float32[128]{WEAK}", "float32[128]") for path in ("reward", "done")]
    assert "`reward`, `done` were computed from Python scalars" in cures.cure("weak_type", changes)


@pytest.mark.parametrize(
    ("after", "says"),
    [
        ("train.residuals", "Define the function `fn` once"),
        ("train.fit.<locals>.residuals", "Define the function `fn` once"),
        ("<Config object>", "Give the type of `fn` an `__eq__`"),
        ("numpy.linalg.f.<locals>.g", "The function belongs to optimistix: keep the object"),
    ],
)
def test_what_the_user_gives_to_a_library_is_the_users_to_keep(after: str, says: str) -> None:
    """Optimistix's `least_squares` was called again and again with another closure."""
    change = Change("fn", "static_argument", after, f"{after} (another object; it compares by identity)")
    assert cures.cure("static_argument", [change], owner="optimistix").startswith(says)


@pytest.mark.parametrize(("cause", "before"), [("sharding", "P('data')"), ("placement", "uncommitted")])
def test_arguments_that_belong_in_several_places_are_not_all_put_in_one(cause: str, before: str) -> None:
    """A mixture of experts has its experts sharded and its router on every device."""
    experts, router = (Change(path, cause, before, after) for path, after in (("up", "P('x')"), ("router", "P()")))
    assert "P('x'))) for `up`, and likewise each of the others in its own place" in cures.cure(cause, [experts, router])
    assert "in its own place" not in cures.cure(cause, [experts, dataclasses.replace(experts, path="down")])


@pytest.mark.parametrize(
    "change",
    [
        Change("state.count", "sharding", "P('a') on {'a': 1}", "P('i') on {'i': 1}"),
        Change("state.reward", "weak_type", f"float32[128]{WEAK}", "float32[128]"),
        Change("state.count", "placement", "uncommitted", "committed to cpu:0"),
    ],
    ids=lambda change: change.what,
)
def test_arguments_of_a_librarys_function_may_be_its_own(change: Change) -> None:
    """Brax calls `training_epoch` with a state of its own making: its user can place nothing."""
    advice = cures.cure(change.what, [change], owner="brax")
    assert advice.endswith("This applies to arguments that you create; the function belongs to brax.")
    told = {"cause": change.what, "changes": (change,), "library_site": "brax/training/train.py:685"}
    for reason, objections in ((advice, []), (cures.cure(change.what, [change]), ["the user cannot change brax"])):
        event = compilation("brax.training.train.<locals>.training_epoch", reason=reason, eager=False, **told)
        assert refuted(as_event(event)) == objections


@pytest.mark.parametrize(("change", "earlier", "sentence"), rows("refutes"))
def test_the_checker_refuses_what_the_facts_refute(
    change: Change, earlier: int, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these was said of a real program once."""
    monkeypatch.setattr("jaxobs.internals.source_files.owner", lambda module: "numpyro" if "numpyro" in module else "")
    event = compilation("train.step", cause=change.what, reason=sentence, changes=(change,), eager=False)
    assert refuted(as_event(event))


def reasons(eager: bool) -> list[tuple[str, str]]:
    found, _, _ = jaxobs.state.store.current().events(kind="compilation")
    return [(each.cause, each.reason) for each in found if each.eager == eager]  # type: ignore[attr-defined]


def test_operations_are_compared_with_calls_from_the_same_line() -> None:
    """A size that varies at one line is to be padded; of other sizes on another line nothing of the kind is said."""
    jaxobs.install()
    weights = [np.ones((3, 5), np.float32), np.ones((5, 7), np.float32)]
    first = jnp.tanh(weights[0])
    second = jnp.tanh(weights[1])
    assert first.shape != second.shape
    told_of = [each for each in reasons(eager=True) if "`tanh`" in each[1]]
    assert [cause for cause, _ in told_of] == ["first_call", "shape"]
    assert "each new shape compiles another program" in told_of[1][1]
    for size in (11, 13, 17):
        jnp.cos(np.ones(size, np.float32))
    varied = [each for each in reasons(eager=True) if "`cos`" in each[1]]
    assert [cause for cause, _ in varied] == ["first_call", "shape", "shape"]
    assert "float32[13] -> float32[17]" in varied[2][1]
    assert "Pad dimension 0 of `x`" in varied[2][1]


def test_operations_inside_a_library_are_compared_with_calls_from_the_same_lines(tmp_path: Path) -> None:
    """The layers of a model are programs of their own: none is another one again."""
    (tmp_path / "layers.py").write_text(
        "import jax.numpy as jnp\ndef one(x):\n    return jnp.sinh(x)\ndef two(x):\n    return jnp.sinh(x)\n"
    )
    folders = source_files._PACKAGE_FOLDERS, source_files._LIBRARY_FOLDERS
    here = (str(tmp_path) + os.sep,)
    jaxobs.install()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(source_files, "_PACKAGE_FOLDERS", (*folders[0], *here))
        patched.setattr(source_files, "_LIBRARY_FOLDERS", (*folders[1], *here))
        patched.syspath_prepend(str(tmp_path))
        layers = importlib.import_module("layers")
        layers.one(np.ones((3, 5), np.float32))
        layers.two(np.ones((5, 7), np.float32))
    told_of = [each for each in reasons(eager=True) if "`sinh`" in each[1]]
    assert [cause for cause, _ in told_of] == ["first_call", "first_call"]
    assert told_of[1][1] == "First call of `sinh` with these arguments, at layers.py:5."


def test_a_state_that_comes_back_weakly_typed_is_cured_where_it_is_computed() -> None:
    """The state starts as an array of a fixed type: to start otherwise would change nothing."""
    jaxobs.install()

    @jax.jit
    def step(state: dict[str, Any]) -> dict[str, Any]:
        return {"q": jnp.where(state["q"] > 3, 1.0, 0.0)}

    functools.reduce(lambda state, _: step(state), range(3), {"q": jnp.zeros(())})
    (_, (cause, reason)) = reasons(eager=False)
    assert cause == "weak_type"
    assert "The code that computes `state['q']` now uses only Python scalars" in reason
    (finding,) = jaxobs.snapshot().findings
    assert finding.finding == "weak_type_at_start"
    assert "The code that computes `state['q']` now" in finding.advice
