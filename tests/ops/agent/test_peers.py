"""Peers: who differs, by votes of several windows."""

from __future__ import annotations

from jaxobs.ops.agent import steps


def windows(*values: float) -> list[tuple[float, float]]:
    return [(60.0 * number, value) for number, value in enumerate(values)]


def test_one_that_differs_is_found() -> None:
    given = {f"{number}": windows(1.0, 1.01, 0.99, 1.0, 1.0) for number in range(7)} | {"slow": windows(*[1.4] * 5)}
    (found,) = steps.outliers(given)
    assert (found.name, found.value, found.votes, found.windows) == ("slow", 1.4, 5, 5)
    assert found.median == 1.0


def test_one_window_is_no_vote() -> None:
    given = {f"{number}": windows(1, 1, 1, 1, 1) for number in range(5)} | {"spike": windows(1, 9, 1, 9, 1)}
    assert steps.outliers(given) == []


def test_a_few_per_cent_are_ordinary() -> None:
    given = {f"{number}": windows(1, 1, 1, 1, 1) for number in range(5)} | {"near": windows(*[1.05] * 5)}
    assert steps.outliers(given) == []


def test_two_cannot_be_compared() -> None:
    assert steps.outliers({"a": windows(1, 1, 1), "b": windows(9, 9, 9)}) == []
    assert steps.outliers({name: windows(9 if name == "d" else 1, 1) for name in "abcd"}) == []


def test_a_change_is_held_against_the_variation_before() -> None:
    assert steps.changed(windows(1, 1.1, 0.9, 1, 2, 2, 2, 2), 240) == (1.0, 2.0)
    assert steps.changed(windows(1, 5, 1, 5, 2, 2, 2, 2), 240) is None
    assert steps.changed(windows(1, 1, 2, 2, 2), 120) is None
