"""promtool's tests as they are shipped: many cases in few tests, since promtool evaluates every rule in each of them.

Each case has its series under a job of its own, so that many cases can share one Prometheus: what fires is asked for by
that job. promtool compares annotations only where it compares everything that fires by one
name; so they are tested of alerts that the series of the others cannot make fire.
"""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from jaxobs.ops.monitoring import alerting, promql
from jaxobs.ops.monitoring.rule_types import Alert, Case, Fired
from jaxobs.ops.monitoring.site import Site

SHORT = 30
"""Minutes that a case takes at most for its annotations to be shipped."""
LENGTHS = (60, 300)
"""Minutes of the tests that cases are put together in; what is longer has one more."""

_JOB = re.compile(r'(\bjob=")([^"]*)"')
_MINUTES = {"m": 1, "h": 60}
_NOT_ALONE = ("jax_process_start_timestamp_seconds", "jax_run_info", "jax_process_info")
"""Series that many cases have next to those that are their own."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Cases that look at the same series."""

    alert: Alert
    cases: tuple[Case, ...]

    def minutes(self) -> int:
        return max(_minutes(case.at) for case in self.cases)


def tests(site: Site, interval: str) -> dict[str, Any]:
    """Returns the file of one interval between samples, for the alerts that the site took as they are."""
    alerts = [alert for alert in alerting.enabled(site) if alert.name not in site.alerts]
    found = units_of(alerts, interval)
    return {
        "rule_files": ["jaxobs.rules.yaml"],
        "evaluation_interval": interval,
        "group_eval_order": [group["name"] for group in alerting.groups(site)],
        "tests": [*_together(found, interval, site), *_annotated(found, interval, site)],
    }


def units_of(alerts: list[Alert], interval: str) -> list[Unit]:
    """Returns the cases of an interval, those of the same series together."""
    return [
        Unit(alert, tuple(cases))
        for alert in alerts
        for (_, apart), cases in itertools.groupby(alert.cases, key=lambda case: (case.series, case.interval))
        if apart == interval
    ]


def _together(units: list[Unit], interval: str, site: Site) -> Iterator[dict[str, Any]]:
    """All cases, by length: what fires of each, with its labels."""
    numbered = [renamed(unit, f"{number}") for number, unit in enumerate(units)]
    bounds = (0, *LENGTHS, 10**9)
    for least, most in itertools.pairwise(bounds):
        found = [unit for unit in numbered if least < unit.minutes() <= most]
        if found:
            asked = [each for unit in found for each in questions(unit, site)]
            yield {**with_series(found, interval, f"cases up to {most} min"), "promql_expr_test": asked}


def questions(unit: Unit, site: Site) -> Iterator[dict[str, Any]]:
    job = _job(unit)
    name = unit.alert.name
    for case in unit.cases:
        fires = [
            {**alerting.labels(unit.alert, site), **fired.labels, "alertname": name, "alertstate": "firing"}
            for fired in case.fires
        ]
        yield {
            "expr": f'ALERTS{{alertname="{name}", alertstate="firing", job="{job}"}}',
            "eval_time": case.at,
            "exp_samples": [{"labels": f"ALERTS{{{_written(each)}}}", "value": 1} for each in fires],
        }
        state = alerting.ON_THE_WAY.get(case.kind)
        if state is not None:
            way = f'last_over_time(ALERTS{{alertname="{name}", alertstate="{state}", job="{job}"}}[1d])'
            seen = {"labels": "{}", "value": 1}
            yield {"expr": f"count({way}) > bool 0", "eval_time": case.at, "exp_samples": [seen]}


def _annotated(units: list[Unit], interval: str, site: Site) -> Iterator[dict[str, Any]]:
    """The earliest firing case of many alerts, with all labels and annotations."""
    first: dict[str, Unit] = {}
    for unit in units:
        firing = [case for case in unit.cases if case.kind == "firing"]
        for case in sorted(firing, key=lambda each: _minutes(each.at))[:1]:
            known = first.get(unit.alert.name)
            if _minutes(case.at) > SHORT and interval == "1m":
                continue
            if known is None or _minutes(case.at) < known.minutes():
                first[unit.alert.name] = Unit(unit.alert, (case,))
    driven = {name: _drivers(unit.alert, site) for name, unit in first.items()}
    has = {name: _metrics(unit) for name, unit in first.items()}
    tests: list[list[str]] = []
    for name in sorted(first, key=lambda each: (first[each].minutes(), each)):
        for others in tests:
            if all(not driven[name] & has[other] and not driven[other] & has[name] for other in others):
                others.append(name)
                break
        else:
            tests.append([name])
    found = [renamed(first[name], "a") for name in max(tests, key=len)]
    yield {
        **with_series(found, interval, "annotations"),
        "alert_rule_test": [
            each for unit in found for each in alerting.test(unit.alert, list(unit.cases), site)["alert_rule_test"]
        ],
    }


def _drivers(alert: Alert, site: Site) -> frozenset[str]:
    """The metrics that can make an alert fire, those behind what is recorded included."""
    recorded: dict[str, list[str]] = {}
    for group in alerting.recording_groups(site):
        for rule in group["rules"]:
            recorded.setdefault(rule["record"], []).append(rule["expr"])
    same = [each for each in alerting.enabled(site) if each.name == alert.name]
    wanted, found = [alerting.expression(each, site) for each in same], set()
    done: set[str] = set()
    while wanted:
        expr = wanted.pop()
        if expr in done:
            continue
        done.add(expr)
        for selector in promql.selectors(expr):
            wanted += recorded.get(selector.name, [])
            if selector.name not in recorded:
                found.add(selector.name)
    return frozenset(found.difference(_NOT_ALONE) or found)


def _metrics(unit: Unit) -> frozenset[str]:
    return frozenset(name.partition("{")[0] for case in unit.cases for name in case.series)


def with_series(units: list[Unit], interval: str, name: str) -> dict[str, Any]:
    samples = {id(unit): unit.minutes() // _minutes(interval) + 1 for unit in units}
    given = {name: _cut(values, samples[id(unit)]) for unit in units for name, values in unit.cases[0].series.items()}
    return {
        "name": name,
        "interval": interval,
        "input_series": [{"series": each, "values": values} for each, values in given.items()],
    }


def _cut(values: str, most: int) -> str:
    """The first samples, in promtool's notation: what comes after a case was looked at costs each rule time."""
    kept: list[str] = []
    for samples_text in values.split():
        once, times, more = samples_text.partition("x")
        samples = 1 if not times else int(more) if once == "_" else int(more) + 1
        left = min(samples, most)
        kept.append(samples_text if left == samples else f"{once}x{left if once == '_' else left - 1}")
        most -= left
        if not most:
            break
    return " ".join(kept)


def renamed(unit: Unit, mark: str) -> Unit:
    """The unit with a job of its own."""

    def job(text: str) -> str:
        return f"{text}-{unit.alert.name}-{mark}"

    def fired(each: Fired) -> Fired:
        return replace(each, labels={**each.labels, "job": job(each.labels["job"])})

    cases = (
        replace(
            case,
            series={_JOB.sub(lambda found: f'{found[1]}{job(found[2])}"', name): v for name, v in case.series.items()},
            fires=tuple(map(fired, case.fires)),
        )
        for case in unit.cases
    )
    return Unit(unit.alert, tuple(cases))


def _job(unit: Unit) -> str:
    """The job of what fires, else the first one of the series."""
    named = [fired.labels["job"] for case in unit.cases for fired in case.fires]
    found = _JOB.search(next(iter(unit.cases[0].series)))
    assert found is not None
    return named[0] if named else found[2]


def _written(labels: dict[str, str]) -> str:
    return ", ".join(f"{name}={promql.quoted(value)}" for name, value in sorted(labels.items()) if value)


def _minutes(duration: str) -> int:
    return int(duration[:-1]) * _MINUTES[duration[-1]]
