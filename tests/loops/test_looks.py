"""Intervals: the seconds between two looks of the clock, by how much is known and how much a look costs."""

import pytest

from jaxobs.loops.intervals import EARLY_LOOKS, STEADY_LOOKS, pause


@pytest.mark.parametrize(
    ("looks", "quiet", "serves", "seconds"),
    [
        (0, False, False, 0.03), (0, False, True, 0.03), (0, True, False, 0.5), (STEADY_LOOKS, True, True, 0.5),
        (EARLY_LOOKS, False, False, 0.1), (EARLY_LOOKS, False, True, 0.3),
        (STEADY_LOOKS, False, False, 0.3), (STEADY_LOOKS, False, True, 1.0),
    ],
)  # fmt: skip
def test_looks_become_rarer(looks: int, quiet: bool, serves: bool, seconds: float) -> None:
    """At random, and on average as long as that; a service has many threads, so it is looked at less often."""
    pauses = [pause(looks, quiet=quiet, serves=serves) for _ in range(400)]
    assert 0.5 * seconds <= min(pauses) < 0.7 * seconds < 1.3 * seconds < max(pauses) <= 1.5 * seconds
