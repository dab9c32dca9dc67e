"""The simulator of weeks: what it plays is what it says, and a day of all fleets, small ones, wakes nobody."""

from __future__ import annotations

import random

import pytest

from jaxobs.monitoring.lives.support.scenes import init, serves, trains
from tools import weeks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.mark.parametrize("fleet", weeks.FLEETS)
def test_processes_are_as_asked_for(fleet: str) -> None:
    """The same with the same seed; not all at once, nor more at a time than there are."""
    found = list(weeks.FLEETS[fleet](random.Random(1), 2 * weeks.DAY, 40))
    assert found == list(weeks.FLEETS[fleet](random.Random(1), 2 * weeks.DAY, 40))
    assert found != list(weeks.FLEETS[fleet](random.Random(2), 2 * weeks.DAY, 40))
    spans = [(each.start, each.start + sum(part.minutes for part in each.parts)) for each in found]
    at_once = [sum(first <= minute < last for first, last in spans) for minute in range(0, 2 * weeks.DAY, 60)]
    assert len(found) > 40 and 0 < max(at_once) <= 60


def test_a_gap_hides_what_goes_on() -> None:
    """What is not scraped is counted all the same."""
    parts = weeks._without([init(3), trains(10)], 5, 4)
    assert [(each.minutes, each.scraped) for each in parts] == [(3, True), (2, True), (4, False), (4, True)]
    assert sum(each.minutes for each in weeks._cut([init(3), trains(10)], 7)) == 7


def test_a_small_week_wakes_nobody_and_a_bad_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six hours of few processes: nothing is sent; of a service that only fails, something is."""

    def mixed(chance: random.Random, minutes: int, processes: int) -> weeks.Iterator[weeks.Process]:
        for fleet in (weeks.training, weeks.serving, weeks.research):
            yield from fleet(chance, minutes, processes)

    def failing(chance: random.Random, minutes: int, processes: int) -> weeks.Iterator[weeks.Process]:
        yield weeks.Process(job="bad", instance="a:9464", parts=[init(1), serves(minutes, errors=60)])

    monkeypatch.setattr(weeks, "FLEETS", {"mixed": mixed, "failing": failing})
    quiet = weeks.play("mixed", weeks.DAY // 4, 30, 3)
    assert quiet.told == [] and quiet.series > 300
    loud = weeks.play("failing", 40, 1, 3)
    assert any("JaxSloRequestAvailabilityBurn" in each for each in loud.told)
