"""Burn-rate alerts: windows and factors against the workbook's, and each threshold just above and just below it."""

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from helpers import rule_checks

from jaxobs.base.errors import SettingError
from jaxobs.ops.monitoring import alerting, burn_rates, promql
from jaxobs.ops.monitoring.objective_types import Objective
from jaxobs.ops.monitoring.objectives import objectives
from jaxobs.ops.monitoring.site import AlertChoice, ObjectiveChoice, Site

SITE = Site()
# https://sre.google/workbook/alerting-on-slos/, table 5-8; fourth pair and waiting times: kubernetes-mixin.
WORKBOOK = {
    ("1h", "5m"): ("14.4", "2m"),
    ("6h", "30m"): ("6", "15m"),
    ("1d", "2h"): ("3", "1h"),
    ("3d", "6h"): ("1", "3h"),
}


@pytest.mark.parametrize("pair", burn_rates.PAIRS, ids=lambda pair: pair.long)
def test_factors_are_the_workbooks(pair: burn_rates.Pair) -> None:
    """For 30 days; for 28 they are fewer in proportion, as the budget is spent over fewer days."""
    factor, waits = WORKBOOK[pair.long, pair.short]
    assert pair.factor(30) == Decimal(factor) and pair.for_ == waits
    assert pair.factor(28) == pytest.approx(Decimal(factor) * 28 / 30, abs=Decimal("0.0001"))


@pytest.mark.parametrize("objective", objectives(), ids=lambda objective: objective.name)
def test_thresholds_are_exact_and_can_be_reached(objective: Objective) -> None:
    """No binary digits, none above 1: what would take more than everything to be bad is left out."""
    rules = [alerting.rule(alert, SITE) for alert in burn_rates.alerts(objective)]
    assert rules
    for rule, (_, share) in zip(rules, burn_rates.pairs(objective), strict=True):
        found = [Decimal(each) for each in re.findall(r"> (\S+)$", rule["expr"], re.MULTILINE)]
        assert found == [share, share] and share < 1 and len(str(share)) < 10
    windows = {(rule["labels"]["long"], rule["labels"]["short"]) for rule in rules}
    assert len(windows) == len(rules)
    if objective.budget < Decimal("0.06"):
        assert windows == set(WORKBOOK)


@pytest.mark.slow
@pytest.mark.parametrize("objective", objectives(), ids=lambda objective: objective.name)
def test_each_threshold_is_where_it_says(objective: Objective, tmp_path: Path) -> None:
    """With what is recorded given: 1 % above in both windows fires; below in either does not, nor does too little."""
    alerts = [alerting.rule(alert, SITE) for alert in burn_rates.alerts(objective)]
    tests = [
        _given(objective, rule, factors, fires)
        for rule in alerts
        for factors, fires in (
            (("1.01", "1.01", "1.01"), True), (("0.99", "1.01", "1.01"), False), (("1.01", "0.99", "1.01"), False),
            (("1.01", "1.01", "0.99"), False),
        )
    ]  # fmt: skip
    output = rule_checks.tested([{"name": "alerts", "rules": alerts}], tests, tmp_path)
    assert "SUCCESS" in output and "FAILED" not in output, output


def _given(objective: Objective, rule: dict[str, Any], factors: tuple[str, str, str], fires: bool) -> dict[str, Any]:
    """Returns a test of a pair: shares over both windows, and how much there was, as multiples of the thresholds."""
    labels = rule["labels"]
    share = next(share for pair, share in burn_rates.pairs(objective) if pair.long == labels["long"])
    waits = next(pair.for_ for pair, _ in burn_rates.pairs(objective) if pair.long == labels["long"])
    minutes = int(waits[:-1]) * (60 if waits.endswith("h") else 1)
    chosen = f'{{job="j", slo="{objective.name}", instance="all"}}'
    long, short, enough = (Decimal(factor) for factor in factors)
    # One sample holds it all: in the range of the long window it is the sum.
    total = objective.least * 5 * enough
    series = {
        burn_rates.ERRORS.format(window=labels["long"]): share * long,
        burn_rates.ERRORS.format(window=labels["short"]): share * short,
    }
    wanted = 'count(ALERTS{{alertstate="firing", long="{}"}}) or vector(0)'.format(labels["long"])
    # The short window of one pair may be the long one of none, so no other pair has both.
    return {
        "name": f"{labels['long']} {factors}",
        "interval": "1m",
        "input_series": [
            *({"series": name + chosen, "values": f"{value}x{minutes + 3}"} for name, value in series.items()),
            {"series": burn_rates.TOTAL + chosen, "values": promql.number(float(total))},
        ],
        "promql_expr_test": [
            {
                "expr": wanted,
                "eval_time": f"{minutes + 2}m" if minutes < 300 else "303m",
                "exp_samples": [{"labels": "{}", "value": int(fires)}],
            }
        ],
    }


def test_a_site_may_change_targets_but_not_single_thresholds() -> None:
    """The budget follows the target and the period; what has an objective takes its thresholds from there."""
    choice = ObjectiveChoice(target=0.99, period="30d")
    chosen = Site(objectives={"goodput": choice, "cache-hits": ObjectiveChoice(enabled=False)})
    alerting.check(chosen)
    found = [alert for alert in alerting.declared(chosen) if alert.name == "JaxSloGoodputBurn"]
    shares = sorted(alerting.thresholds(alert, chosen)["share"] for alert in found)
    assert shares == pytest.approx([0.01, 0.03, 0.06, 0.144])
    assert "JaxSloCacheHitsBurn" not in {alert.name for alert in alerting.declared(chosen)}
    wrong: dict[str, Site] = {
        "there is no such objective. Did you mean `goodput`\\? Known: cache-hits": Site(
            objectives={"good": ObjectiveChoice()}
        ),
        "change objectives.goodput instead": Site(alerts={"JaxSloGoodputBurn": AlertChoice(for_="5m")}),
    }
    for told, site in wrong.items():
        with pytest.raises(SettingError, match=told):
            alerting.check(site)
    with pytest.raises(SettingError, match=r"objectives\.goodput\.target is 1: it must be between"):
        Site(objectives={"goodput": ObjectiveChoice(target=1.0)})


@pytest.mark.slow
def test_what_is_recorded_is_what_a_count_by_hand_gives(tmp_path: Path) -> None:
    """Shares over both short windows and what is left of the budget, through trouble, a restart and no traffic."""
    # A hundred good minutes, forty with half of it bad, a restart with forty good ones, twenty without any request.
    parts = [(100, 60, 0), (40, 30, 30), (40, 60, 0), (20, 0, 0)]
    good = [rate for length, rate, _ in parts for _ in range(length)]
    bad = [rate for length, _, rate in parts for _ in range(length)]
    restart = 140
    name = 'jax_requests_total{{job="serve", instance="a:9464", route="predict", cold="{}", outcome="ok"}}'
    series = {
        name.format("false"): _counted(good, restart),
        name.format("true"): _counted(bad, restart),
        'jax_process_start_timestamp_seconds{job="serve", instance="a:9464"}': f"0x{restart - 1} {restart * 60}x60",
    }
    totals = [sum(good[max(0, at - 4) : at + 1]) + sum(bad[max(0, at - 4) : at + 1]) for at in range(200)]
    bads = [sum(bad[max(0, at - 4) : at + 1]) for at in range(200)]
    chosen = '{job="serve", slo="cold-requests", instance="all"}'
    # A process does not count in its first twenty minutes.
    counts = [(at - restart if at >= restart else at) > 20 for at in range(200)]

    def asked(record: str, at: int, value: float | None) -> dict[str, Any]:
        samples = [] if value is None else [{"labels": chosen, "value": round(value, 4)}]
        return {"expr": f"round({record}{chosen}, 0.0001)", "eval_time": f"{at}m", "exp_samples": samples}

    wanted = []
    for at in (99, 120, 139, 170, 199):
        hour = [k for k in range(max(0, at - 60), at + 1) if counts[k]]
        so_far = [k for k in range(at + 1) if counts[k]]
        wanted += [
            asked(burn_rates.TOTAL, at, totals[at]),
            asked(burn_rates.BAD, at, bads[at]),
            asked(burn_rates.ERRORS.format(window="5m"), at, bads[at] / totals[at] if totals[at] else None),
            asked(burn_rates.ERRORS.format(window="1h"), at, sum(bads[k] for k in hour) / sum(totals[k] for k in hour)),
            asked(burn_rates.REMAINING, at, 1 - sum(bads[k] for k in so_far) / sum(totals[k] for k in so_far) / 0.01),
        ]
    assert {each["exp_samples"][0]["value"] for each in wanted if each["exp_samples"]} >= {300, 150, 0.5, 1}
    groups = [group for group in alerting.recording_groups(SITE) if group["name"] == "jaxobs-slo"]
    given = [{"series": each, "values": values} for each, values in series.items()]
    output = rule_checks.tested(
        groups, [{"interval": "1m", "input_series": given, "promql_expr_test": wanted}], tmp_path
    )
    assert "SUCCESS" in output and "FAILED" not in output, output


def _counted(rates: list[int], restart: int) -> str:
    """A counter minute by minute, that begins anew at the restart."""
    values, value = [], 0
    for minute, rate in enumerate(rates):
        value = rate if minute == restart else value + rate
        values.append(str(value))
    return " ".join(values)
