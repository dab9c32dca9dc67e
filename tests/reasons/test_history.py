"""Memory of earlier compilations, and what its bounds give up."""

import jax
import pytest

from jaxobs.internals import Call
from jaxobs.reasons import history
from jaxobs.reasons.explanation import Explainer
from jaxobs.reasons.history import MOST_SIGNATURES, History
from jaxobs.reasons.signature import Signature, take


def f(parameters):
    """Something to explain."""


def signature(size: int, prefix: str = "layer", leaves: int = 50) -> Signature:
    parameters = {f"{prefix}_{n}": jax.ShapeDtypeStruct((size, n), "float32") for n in range(leaves)}
    taken = take(Call(f, f, (parameters,), {}))
    assert taken is not None
    return taken


def test_equal_leaves_are_one_object() -> None:
    first, second = signature(3), signature(3)
    assert all(a is b for a, b in zip(first.leaves, second.leaves, strict=True))
    past = History()
    program = past.program("f")
    past.remember("f", lambda: f, first)
    shared = program.sharing(second)
    assert shared == second
    assert shared.tree is first.tree


def test_another_tree_is_not_shared() -> None:
    past = History()
    past.remember("f", lambda: f, past.program("f").sharing(signature(3)))
    other = signature(3, "block")
    assert past.program("f").sharing(other).tree is other.tree


def test_a_program_keeps_its_latest_signatures() -> None:
    past = History()
    for size in range(MOST_SIGNATURES + 5):
        past.program("f")
        past.remember("f", lambda: f, signature(size, leaves=2))
    kept = past.program("f").signatures()
    assert [each.leaves[0].shape[0] for each in kept] == list(range(5, MOST_SIGNATURES + 5))
    assert past.given_up == 5


@pytest.mark.parametrize("programs", [1, 7])
def test_signatures_are_bounded_by_what_they_weigh(programs: int) -> None:
    """The program that compiled longest ago gives up its signatures, and stays known."""
    past = History(most_words=20_000)
    for round in range(20):
        for number in range(programs):
            past.program(number)
            past.remember(number, lambda: f, signature(round, f"p{number}"))
    everybody = [past.program(number) for number in range(programs)]
    kept = [len(each.signatures()) for each in everybody]
    assert sum(each.words for each in everybody) <= 20_000
    assert sum(kept) + past.given_up == 20 * programs
    assert kept[-1] > 0
    assert all(each.seen for each in everybody)


def test_the_weight_of_a_tree_lasts_as_long_as_the_tree() -> None:
    """A tree that other signatures share is still weighed when the one that brought it goes."""
    past = History()
    for size in range(3 * MOST_SIGNATURES):
        program = past.program("f")
        past.remember("f", lambda: f, program.sharing(signature(size)))
    assert program.words > history._WORDS_IN_TREE * 50


def test_a_program_without_signatures_is_not_taken_for_new() -> None:
    explainer = Explainer(History(most_words=100))
    explainer.explain("f", Call(f, f, None, {}), signature(1))
    assert explainer.history.given_up == 1
    assert explainer.explain("f", Call(f, f, None, {}), signature(2)).cause == "unknown"


def test_a_dropped_program_weighs_nothing() -> None:
    past = History(most_programs=2)
    for number in range(10):
        past.program(number)
        past.remember(number, lambda: f, signature(number))
    assert len(past) == 2
    assert past.given_up == 8
    assert past._words == past.program(8).words + past.program(9).words
