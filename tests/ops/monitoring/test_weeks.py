"""The simulator of weeks: what it plays is what it says, and hours of all fleets, small ones, wake nobody."""

import functools
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.requirements import program

from tools.alert_suites.deaths.training import silent
from tools.alert_suites.kinds import Life
from tools.alert_suites.lives.training import LIVES
from tools.alert_suites.scenes import Process, init, series, serves, trains
from tools.weeks import gaps, playing, table
from tools.weeks.research import research
from tools.weeks.serving import serving
from tools.weeks.training import training

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.mark.parametrize("fleet", playing.FLEETS)
def test_processes_are_as_asked_for(fleet: str) -> None:
    """A seed gives the same processes again: not all at once, nor more at a time than there are."""
    drawn = playing.FLEETS[fleet]
    found = list(drawn(random.Random(1), 2 * gaps.DAY, 40))
    assert found == list(drawn(random.Random(1), 2 * gaps.DAY, 40))
    assert found != list(drawn(random.Random(2), 2 * gaps.DAY, 40))
    assert len(found) > 40 and 0 < playing.at_once(found, 2 * gaps.DAY) <= 60


def test_a_gap_hides_what_goes_on() -> None:
    """Counters go on while nothing is scraped; a scrape that fails leaves `up` at 0."""
    parts = gaps.without([init(3), trains(10)], 5, 4)
    assert [(each.minutes, each.scraped) for each in parts] == [(3, True), (2, True), (4, False), (4, True)]
    assert sum(each.minutes for each in gaps.cut([init(3), trains(10)], 7)) == 7
    early = gaps.without([init(3), trains(10)], -2, 4)
    assert [(each.minutes, each.scraped) for each in early] == [(2, False), (1, True), (10, True)]
    failed = Process(job="j", instance="a", parts=gaps.without([trains(9)], 3, 2, failed=True))
    found = series([failed], 9)
    assert found['up{job="j", instance="a"}'] == "1+0x2 0+0x1 1+0x3"
    assert found['jax_steps_total{job="j", instance="a", loop="train"}'] == "60+60x2 stale _x1 360+60x3"


@pytest.mark.settled
def test_a_small_week_wakes_nobody_and_a_bad_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six hours of few processes: nothing is sent; of a service that only fails, something is, and until when."""
    program("go")

    def mixed(chance: random.Random, minutes: int, processes: int) -> Iterator[Process]:
        for fleet in (training, serving, research):
            yield from fleet(chance, minutes, processes)

    def failing(chance: random.Random, minutes: int, processes: int) -> Iterator[Process]:
        yield Process(job="bad", instance="a:9464", parts=[init(1), serves(40, errors=60), serves(minutes - 41)])

    monkeypatch.setattr(playing, "FLEETS", {"mixed": mixed, "failing": failing})
    quiet = playing.play("mixed", gaps.DAY // 4, 30, 3)
    assert quiet.sent == [] and quiet.series > 300 and quiet.samples > 30_000
    loud = playing.play("failing", 200, 1, 3)
    told = [each for each in loud.sent if each.alert == "JaxSloRequestAvailabilityBurn" and each.severity == "critical"]
    assert told and told[0].first < 30 and told[0].last < 120 and told[0].labels["job"] == "bad"
    assert loud.pages >= 1


@pytest.mark.settled
@pytest.mark.parametrize(
    ("alert", "more"),
    [
        ("Died", {"labels": 'jax_end="removed"'}),
        ("Died", {"ended": 'pod_phase="Failed"'}),
        ("Gone", {}),
        ("Gone", {"up_after": 0}),
    ],
    ids=["file", "kubernetes", "static", "http"],
)
def test_a_thousand_that_die_at_once_are_one_alert(
    alert: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as promtool does not take: all processes of a job fall silent after 20 minutes."""
    program("go")
    monkeypatch.setattr(playing, "FLEETS", {"dies": lambda chance, minutes, count: silent("dies", count, **more)})
    told = playing.play("dies", 60, 1000, 3).sent
    assert [(each.alert, each.labels["job"]) for each in told] == [(f"JaxTraining{alert}", "dies")]
    assert 20 < told[0].first <= 20 + (15 if alert == "Died" else 18)


def test_the_table_is_written_between_its_marks(tmp_path: Path) -> None:
    """A row for each fleet that was played; the rest of the page stays; a page without marks is refused."""
    page = tmp_path / "page.md"
    page.write_text(
        f"before\n{table.BEGIN}\n| training | 2020-01-01 | 0 | 7 | 1 | 1 | 1 | 1 | 0 | 0 |\n{table.END}\nafter\n"
    )
    one = playing.Played("serving", 0, 10080, 280, 40, 8000, 5_000_000, [], 9.0)
    sent = playing.Sent("JaxTargetDown", "warning", {"job": "a"}, 1500, 1509)
    other = playing.Played("serving", 1, 10080, 290, 38, 8000, 5_000_000, [sent], 9.0)
    table.write(page, [one, other])
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n")
    assert "| 0, 1 | 14 | 570 | 40 | 16,000 | 10,000,000 | 0 | 1 |\n" in text
    assert text.count("| serving |") == text.count("| training | 2020-01-01 | 0 | 7 |") == 1
    table.write(page, [one])
    assert "| 0 | 7 | 280 | 40 |" in page.read_text() and page.read_text().count("| serving |") == 1
    assert str(sent) == 'warning JaxTargetDown{job="a"}: day 2, 01:00, 10 min'
    page.write_text("nothing")
    with pytest.raises(ValueError, match="weeks: begin"):
        table.write(page, [one])


@pytest.mark.settled
@pytest.mark.parametrize(
    "life", [each for each in LIVES if re.fullmatch(r"ends-.*-100", each.name)], ids=lambda life: life.name
)
def test_a_thousand_that_end_wake_nobody(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends of a job have cases with a hundred processes, which promtool can take."""
    program("go")
    assert isinstance(life.processes, functools.partial)
    name, _, parts = life.processes.args
    found = life.processes.func(name, 1000, parts, **life.processes.keywords)
    monkeypatch.setattr(playing, "FLEETS", {"ends": lambda *_: found})
    played = playing.play("ends", life.minutes, 1000, 3)
    assert played.sent == [] and played.processes == 1000
