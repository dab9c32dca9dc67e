"""Histograms as single values: counts and sums exact, whatever was observed, in whatever portions."""

import bisect
import math
import random

import pytest

from jaxobs.exporters.otel.instruments import Recorded
from jaxobs.facts.functions import Histogram
from jaxobs.state.call_stats import MutableHistogram

BOUNDS = (0.001, 0.01, 0.1, 1.0)


def counted(values: list[float], bounds: tuple[float, ...]) -> tuple[int, ...]:
    """Values by bucket, as OpenTelemetry's SDK counts them."""
    counts = [0] * (len(bounds) + 1)
    for value in values:
        counts[bisect.bisect_left(bounds, value)] += 1
    return tuple(counts)


@pytest.mark.parametrize("bounds", [BOUNDS, (), (1.0,)])
@pytest.mark.parametrize("seed", range(30))
def test_counts_and_sum_are_those_that_were_observed(seed: int, bounds: tuple[float, ...]) -> None:
    """After each portion: also of values on a bound, zeros, and values beyond the last bound."""
    choose = random.Random(seed)
    truth, recorded, told = MutableHistogram(bounds), Recorded(), []
    for _ in range(choose.randint(1, 6)):
        for _ in range(choose.randint(0, 40)):
            truth.observe(choose.choice((0.0, 0.001, 1.0, choose.expovariate(1), choose.expovariate(0.01))))
        told += recorded.values(truth.frozen())
        assert counted(told, bounds) == tuple(truth.counts)
        assert math.fsum(told) == pytest.approx(truth.sum, rel=1e-12, abs=1e-15)
    assert list(recorded.values(truth.frozen())) == []


def test_one_value_in_a_bucket_is_itself() -> None:
    """There the sum says it."""
    truth = MutableHistogram(BOUNDS)
    truth.observe(0.042)
    assert list(Recorded().values(truth.frozen())) == [0.042]


def test_what_was_reset_is_counted_from_nothing() -> None:
    """As in a forked child."""
    recorded = Recorded()
    assert len(list(recorded.values(Histogram(BOUNDS, (0, 5, 0, 0, 0), 0.02)))) == 5
    assert len(list(recorded.values(Histogram(BOUNDS, (0, 2, 0, 0, 0), 0.008)))) == 2


def test_a_portion_is_bounded_and_the_rest_follows() -> None:
    """Nothing is lost, and the sum is right in the end."""
    truth = Histogram(BOUNDS, (100, 200, 300, 0, 7), 100.0)
    recorded, told, portions = Recorded(), list[float](), 0
    while portion := list(recorded.values(truth, most=50)):
        assert len(portion) <= 50
        told += portion
        portions += 1
        assert portions < 1000
    assert counted(told, BOUNDS) == truth.counts
    assert math.fsum(told) == pytest.approx(truth.sum, rel=1e-9)


def test_a_sum_out_of_reach_keeps_the_counts() -> None:
    """Our own rounding may have the sum a little beside what the buckets allow."""
    told = list(Recorded().values(Histogram(BOUNDS, (0, 0, 2, 0, 0), 5.0)))
    assert counted(told, BOUNDS) == (0, 0, 2, 0, 0)
