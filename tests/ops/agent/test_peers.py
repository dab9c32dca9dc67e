"""Peers: who differs, by votes of several windows."""

import pytest

from jaxobs.ops.agent import steps


def windows(*values: float) -> list[tuple[float, float]]:
    return [(60.0 * number, value) for number, value in enumerate(values)]


def test_one_that_differs_is_found() -> None:
    given = {f"{number}": windows(1.0, 1.01, 0.99, 1.0, 1.0) for number in range(7)} | {"slow": windows(*[1.4] * 5)}
    (found,) = steps.outliers(given)
    assert (found.name, found.value, found.votes, found.windows) == ("slow", 1.4, 5, 5)
    assert found.median == 1.0


@pytest.mark.parametrize(
    "given",
    [
        {**dict.fromkeys("12345", windows(1, 1, 1, 1, 1)), "spike": windows(1, 9, 1, 9, 1)},
        {**dict.fromkeys("12345", windows(1, 1, 1, 1, 1)), "a few per cent": windows(*[1.05] * 5)},
        {"one": windows(1, 1, 1), "another": windows(9, 9, 9)},
        {**dict.fromkeys("abc", windows(1, 1)), "two windows": windows(9, 1)},
    ],
)
def test_what_is_ordinary(given: dict[str, list[tuple[float, float]]]) -> None:
    assert steps.outliers(given) == []


def test_a_change_is_held_against_the_variation_before() -> None:
    assert steps.changed(windows(1, 1.1, 0.9, 1, 2, 2, 2, 2), 240) == (1.0, 2.0)
    assert steps.changed(windows(1, 5, 1, 5, 2, 2, 2, 2), 240) is None
    assert steps.changed(windows(1, 1, 2, 2, 2), 120) is None
