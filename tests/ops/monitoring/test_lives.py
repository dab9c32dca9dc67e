"""The quiet suite and the death suite, through the rules as they are generated, by promtool."""

import re
from pathlib import Path
from typing import Any

import pytest
from helpers import rule_checks
from helpers.reached_rules import reached

from jaxobs.ops.monitoring import alerting
from jaxobs.ops.monitoring.site import Site
from tools.alert_suites import suites
from tools.alert_suites.__main__ import PAGE, page
from tools.alert_suites.deaths import deaths
from tools.alert_suites.lives import lives
from tools.alert_suites.scenes import Process, series, trains, unseen

SITE = Site(extended=True)
pytestmark = pytest.mark.timeout(1200)


def failures(output: str) -> list[str]:
    """Which lives and deaths fail, and with what."""
    found = re.findall(r'job=~\\"([^"\\]+)\\".*?time: (\S+),\s*\n\s*exp:(.*)\n\s*got:(.*)', output)
    return [f"{job} until {at}: expected {wanted.strip()}, got {got.strip()}" for job, at, wanted, got in found]


def failed(tests: list[dict[str, Any]], folder: Path) -> list[str]:
    """Plays tests, each with the rules that its series can reach, and returns what fails."""
    found: list[str] = []
    for number, test in enumerate(tests):
        groups = reached(alerting.groups(SITE), [each["series"] for each in test["input_series"]])
        output = rule_checks.tested(groups, [test], folder / f"{number}")
        found += failures(output) or ([] if "SUCCESS" in output else [output[-2000:]])
    return found


@pytest.mark.lives
@pytest.mark.settled
def test_nobody_is_told_of_ordinary_life(tmp_path: Path) -> None:
    """No page and no ticket, whatever of it goes on for hours."""
    assert failed(suites.quiet(lives(), SITE), tmp_path) == []


@pytest.mark.lives
@pytest.mark.settled
def test_each_death_is_told_in_time(tmp_path: Path) -> None:
    """The death's own alert fires with its severity, within its minutes, and nothing fires before it."""
    assert failed(suites.noticed(deaths(), SITE), tmp_path) == []


@pytest.mark.lives
@pytest.mark.settled
def test_a_suite_can_fail(tmp_path: Path) -> None:
    """A death that is called a life is told of; a life that is called a death is missed."""
    death = next(each for each in deaths() if each.name == "only-errors")
    life = next(each for each in lives() if each.name == "one-error")
    own = [alerting.rule(alert, SITE) for alert in alerting.enabled(SITE) if alert.name == death.alert]
    groups = [*rule_checks.needed("\n or ".join(f"({rule['expr']})" for rule in own)), {"name": "own", "rules": own}]
    wrong = suites.noticed([death], SITE)
    for each in wrong[0]["promql_expr_test"]:
        each["exp_samples"] = []
    told = failures(rule_checks.tested(groups, wrong, tmp_path))
    assert len(told) == 2 and f'alertname="{death.alert}"' in told[0]
    silent = suites.quiet([life], SITE)
    silent[0]["promql_expr_test"][0]["exp_samples"] = [{"labels": "{}", "value": 1}]
    assert len(failures(rule_checks.tested(groups, silent, tmp_path))) == 1


def test_rules_that_series_cannot_reach_are_left_out() -> None:
    """By name, by labels, and through what is recorded; `unless` needs no right side, `or` either of both."""
    records = {
        "a:b:c": 'sum(x{job=~".+", kind="bad"})', "d:e:f": "a:b:c > 1 or y", "g:h:i": "y unless x",
        "j:k:l": "x unless y", "m:n:o": "absent(y)", "p:q:r": "a:b:c and y", "s:t:u": 'x{kind!="bad"}',
    }  # fmt: skip
    groups = [{"name": "all", "rules": [{"record": name, "expr": expr} for name, expr in records.items()]}]
    for only, kept in (
        ('x{job="j", kind="bad"}', ["a:b:c", "d:e:f", "j:k:l", "m:n:o"]),
        ('x{job="j", kind="good"}', ["j:k:l", "m:n:o", "s:t:u"]),
        ('y{job="j"}', ["d:e:f", "g:h:i", "m:n:o"]),
    ):
        assert [rule["record"] for group in reached(groups, [only]) for rule in group["rules"]] == kept


def test_there_are_enough() -> None:
    """Names once, each death by an alert that there is, with its severity."""
    assert len({each.name for each in lives()}) == len(lives()) >= 25
    assert len({each.name for each in deaths()}) == len(deaths()) >= 20
    known = {(alert.name, alert.severity) for alert in alerting.enabled(SITE)}
    assert {(each.alert, each.severity) for each in deaths()} <= known
    for each in (*lives(), *deaths()):
        assert {process.job for process in each.processes()} == {each.name}


def test_the_page_of_alerts_lists_both() -> None:
    """`python -m tools.alert_suites` writes them."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_scenes_are_written_as_promtool_takes_them() -> None:
    """Gaps are stale at first and then nothing; what ends is stale; a second process follows at the same address."""
    process = Process(job="j", instance="a", parts=[trains(2), unseen(2), trains(2)], start=1)
    steps = 'jax_steps_total{job="j", instance="a", loop="train"}'
    assert series([process], 10)[steps] == "_x1 60+60x1 stale _x1 180+60x1 stale"
    again = Process(job="j", instance="a", parts=[trains(3)], start=7)
    assert series([process, again], 10)[steps].endswith("180+60x1 60+60x2")
