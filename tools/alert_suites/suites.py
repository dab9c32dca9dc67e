"""The quiet suite and the death suite as promtool tests of the rules: what a person would be told, and when.

What inhibits is taken from Alertmanager's configuration and written as PromQL, so that a case sees what is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jaxobs.ops.monitoring import alerting
from jaxobs.ops.monitoring.deploying import prometheus
from jaxobs.ops.monitoring.site import Site
from tools.alert_suites import scenes
from tools.alert_suites.kinds import Death, Life

SPAN = 240
"""Minutes by which scenes are put together into tests, those that serve apart: each test evaluates all rules that its
series can reach for as long as its longest scene lasts."""
BIG = 2000
"""Series from which on a scene is a test of its own."""


def sent(site: Site, job: str, more: str = "") -> str:
    """Returns PromQL for the pages and tickets that Alertmanager sends about jobs: firing, and not inhibited."""
    every = f'alertstate="firing", severity=~"critical|warning", job=~"{job}"'
    expr = f"ALERTS{{{every}{more and f', {more}'}}}"
    for rule in prometheus.alertmanager(site)["inhibit_rules"]:
        target = ", ".join([every, *rule["target_matchers"]])
        source = ", ".join(['alertstate="firing"', *rule["source_matchers"]])
        expr += f"\nunless (ALERTS{{{target}}} and on ({', '.join(rule['equal'])}) ALERTS{{{source}}})"
    return expr


def quiet(lives: Iterable[Life], site: Site) -> list[dict[str, Any]]:
    """A test in which nothing is sent about any of them."""
    return _tests(
        [
            (
                life.name,
                life.minutes,
                {**scenes.series(life.processes(), life.minutes), **life.more},
                [_silent(life, site)],
            )
            for life in lives
        ]
    )


def _silent(life: Life, site: Site) -> dict[str, Any]:
    told = f"group by (alertname, severity) (last_over_time(({sent(site, life.name)})[{life.minutes}m:1m]))"
    return {"expr": told, "eval_time": f"{life.minutes}m", "exp_samples": []}


def noticed(deaths: Iterable[Death], site: Site) -> list[dict[str, Any]]:
    """Tests in which each is told by its alert: not before it, in time, and without others of the default set."""
    return _tests(
        [
            (each.name, each.minutes, {**scenes.series(each.processes(), each.minutes), **each.more}, _told(each, site))
            for each in deaths
        ]
    )


def _told(death: Death, site: Site) -> list[dict[str, Any]]:
    chosen = sent(site, death.name, f'alertname="{death.alert}", severity="{death.severity}"')
    before = f"group by (alertname) (last_over_time(({sent(site, death.name)})[{death.at}m:1m]))"
    after = f"group by (alertname, severity) (last_over_time(({chosen})[{death.within}m:1m]))"
    labels = f'{{alertname="{death.alert}", severity="{death.severity}"}}'
    known = {alert.name for alert in alerting.enabled(Site())}
    ours = sent(Site(), death.name, f'alertname=~"{"|".join(sorted(known))}"')
    once = f"group by (alertname) (last_over_time(({ours})[{death.minutes}m:1m]))"
    names = sorted(known & {death.alert, *death.also})
    return [
        {"expr": before, "eval_time": f"{death.at}m", "exp_samples": []},
        {"expr": after, "eval_time": f"{death.at + death.within}m", "exp_samples": [{"labels": labels, "value": 1}]},
        {
            "expr": once, "eval_time": f"{death.minutes}m",
            "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in names],
        },
    ]  # fmt: skip


def _tests(scenes_: list[tuple[str, int, Mapping[str, str], list[dict[str, Any]]]]) -> list[dict[str, Any]]:
    together: dict[tuple[int, bool, str], dict[str, Any]] = {}
    for name, minutes, series, asked in scenes_:
        serves = any(each.startswith("jax_requests_total") for each in series)
        key = (-(-minutes // SPAN), serves, name if len(series) >= BIG else "")
        test = together.setdefault(key, {"name": name, "interval": "1m", "input_series": [], "promql_expr_test": []})
        test["input_series"] += [{"series": each, "values": values} for each, values in series.items()]
        test["promql_expr_test"] += asked
    return [together[key] for key in sorted(together)]
