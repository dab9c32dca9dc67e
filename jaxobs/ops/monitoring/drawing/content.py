"""Queries, variables and links of a dashboard with a site's choices put in; each format shares them."""

import dataclasses
import functools
import re
import tomllib
from importlib import resources
from typing import Any

from jaxobs.facts.verdicts import SEVERITIES
from jaxobs.ops.monitoring import alerting, promql
from jaxobs.ops.monitoring.panel_types import Board, Column, Panel, Row, Target
from jaxobs.ops.monitoring.promql import quoted
from jaxobs.ops.monitoring.rule_types import Alert
from jaxobs.ops.monitoring.site import Site

TAG = "jaxobs"
ALL = ".+"
ANY = ".*"
"""Matcher of `All` for a label that targets need not have."""
UNITS = {"seconds": "s", "bytes": "bytes", "ratio": "percentunit", "factor": "none", "celsius": "celsius"}
"""Grafana's units by those of thresholds; what is counted has `short`."""
COLORS = {"critical": "red", "warning": "orange", "info": "yellow"}

LIVE = ("Open the live page", "http://${__value.raw}/")
"""Link to the page of a process, if browsers reach it at the address at which Prometheus does."""
WITHOUT = {
    **dict.fromkeys(("serving", "generation"), "No traffic"), "accelerator": "No accelerator", "gpu": "No GPU",
    "tpu": "No TPU", "steps": "No steps", "items": "No items are reported", "input": "No input is observed",
    "persistent_cache": "No persistent cache", "checkpoints": "No checkpoints", "profiles": "No profiles are taken",
    "transfers": "Transfers are not observed",
}  # fmt: skip
"""Text of a panel that shows nothing, by what it needs."""

_LIMIT = re.compile(r"<(Jax\w+)\.(\w+)>")
"""In the query of a panel, a threshold of an alert: `<JaxStepTimeRegression.factor>`."""


@dataclasses.dataclass(frozen=True)
class Content:
    """A board as a site wants it."""

    board: Board
    site: Site
    prices_in: bool
    """The price is written into the queries, for no variable can stand for it."""

    @functools.cached_property
    def _declared(self) -> list[Alert]:
        return alerting.declared(self.site)

    @functools.cached_property
    def _enabled(self) -> list[Alert]:
        return alerting.offered(self.site)

    def uid(self, board: str = "") -> str:
        """The address of a dashboard, by default of this one."""
        return f"jaxobs-{board or self.board.name}"

    def panel_id(self, key: str) -> int:
        """The number of a panel."""
        return alerting.panel_id(key)

    def expr(self, expr: str) -> str:
        """PromQL as it is in the dashboard."""
        chosen = any(each.name == "function" for each in self.board.variables)
        function = 'function=~"$function"' if chosen else self.site.function()
        found = promql.filled(
            _LIMIT.sub(self._limit, expr), self._matchers("instance"), function=function,
            native=self.site.native_histograms, grouping=self.site.grouping,
        )  # fmt: skip
        price = promql.number(self.site.prices.accelerator_hour)
        return found.replace("$price", price) if self.prices_in else found

    def _limit(self, gap: re.Match[str]) -> str:
        alert = next(each for each in self._declared if each.name == gap[1])
        return promql.number(alerting.thresholds(alert, self.site)[gap[2]])

    def legend(self, legend: str) -> str:
        """The name of a series: all labels that distinguish jobs name a job; Grafana omits those that are absent."""
        return legend.replace("{{job}}", " ".join(f"{{{{{name}}}}}" for name in self.site.grouping))

    def columns(self, panel: Panel) -> tuple[Column, ...]:
        """The columns of a table: that of the job follows those of the other labels that distinguish jobs."""
        others = [Column(source=name, title=_title(name)) for name in self.site.grouping if name != "job"]
        if not any(column.source == "job" for column in panel.columns):
            return panel.columns
        return tuple(
            each for column in panel.columns for each in ([*others, column] if column.source == "job" else [column])
        )

    def variable_query(self, query: str) -> str:
        """The query of a variable: within the chosen processes, or of those of the site."""
        return promql.filled(query, self._matchers("instance"), function=self.site.function())

    def _matchers(self, *more: str) -> str:
        """The matchers of the dashboard's variables: all labels that distinguish jobs, and more."""
        chosen = (f'{name}=~"${name}"' for name in (*self.site.grouping, *more))
        return ", ".join([*chosen, *self.site.extra_matchers()])

    def targets(self) -> list[tuple[str, str, str]]:
        """The variables that every dashboard has: name, label, query."""
        found, chosen = [], self.site.extra_matchers()
        for name in (*self.site.grouping, "instance"):
            own = [f"job=~{quoted(self.site.job)}"] if 'job=~"$job"' not in chosen else []
            query = f"label_values(jax_build_info{{{', '.join([*chosen, *own])}}}, {name})"
            found.append((name, _title(name), query))
            chosen = [*chosen, f'{name}=~"${name}"']
        return found

    def all_value(self, variable: str) -> str:
        """Returns the pattern that `All` of a variable stands for."""
        if variable in self.site.grouping and variable != "job":
            return ANY
        return "|".join(self.site.functions) if variable == "function" and self.site.functions else ALL

    def default(self, variable: str) -> str:
        """The first value of a number that the user may type."""
        return promql.number(getattr(self.site.prices, variable))

    def unit(self, unit: str, known: frozenset[str]) -> str:
        """Grafana's id of a unit; `currency` is that of the site."""
        if unit != "currency":
            return unit
        currency = f"currency{self.site.prices.currency}"
        return currency if currency in known else "none"

    def alerts(self, panel: Panel) -> list[Alert]:
        """The alerts that a panel shows, worst first; of several of one name, as burn rates have, the worst."""
        shown = {
            alert.name: alert
            for alert in reversed(self._enabled)
            if alert.panel == (self.board.name, panel.key) or alert.name == panel.alert
        }
        return sorted(shown.values(), key=lambda alert: SEVERITIES.index(alert.severity))

    def threshold(self, panel: Panel) -> tuple[float, str] | None:
        """Value and colour of a panel's alert: of the one that it names, else of the worst that a number stands for.

        A number of things is bad from 1 on where the alert has no number for it.
        """
        for alert in self.alerts(panel):
            if alert.name == panel.alert or (not panel.alert and panel.kind == "stat"):
                value = self._value(alert, panel)
                return (value, COLORS[alert.severity]) if value is not None else None
        return None

    def limits(self, panel: Panel) -> list[tuple[float, str]]:
        """The values at which a panel's colour changes, the worst first, each with the colour beyond it."""
        found = self.threshold(panel)
        limits = [found] if found else [] if panel.good_from is None else [(panel.good_from, COLORS["critical"])]
        for objective in alerting.wanted_objectives(self.site):
            value = float(objective.target if panel.good == "high" else objective.budget)
            stricter = not limits or (value > limits[0][0] if panel.good == "high" else value < limits[0][0])
            if objective.name == panel.objective and stricter:
                limits.append((value, COLORS["info"]))
        return limits

    def row_title(self, row: Row) -> str:
        """The title of a row, with the value for which it is there if it is there for each."""
        return f"{row.title}: ${row.repeat}" if row.repeat else row.title

    def links(self) -> list[dict[str, Any]]:
        """Fields of the dashboard's links: to the others, to runbooks, and to reports if people reach them."""
        chosen = "&".join(f"{name}=${{{name}:percentencode}}" for name in self.site.grouping)
        others = {"type_val": "dashboards", "tags": [TAG], "target_blank": False, "icon": "external link", "url": ""}
        others |= dict.fromkeys(("as_dropdown", "include_vars", "keep_time"), True)
        apart = {"type_val": "link", "tags": [], "target_blank": True, "icon": "doc"}
        apart |= dict.fromkeys(("as_dropdown", "include_vars", "keep_time"), False)
        found = [
            {**others, "title": "JAX dashboards", "tooltip": "The other dashboards, with these selections"},
            {**apart, "title": "Runbooks", "tooltip": "What to do", "url": f"{self.site.runbook_url}/README.md"},
        ]
        reports = {"title": "Agent's reports", "tooltip": "What it found", "url": f"{self.site.reports_url}/?{chosen}"}
        return [*found, {**apart, **reports}] if self.site.reports_url else found

    def cell_links(self, column: Column) -> list[tuple[str, str]]:
        """Titles and addresses to which a click on a cell leads."""
        value = "${__value.raw}"
        known = {
            "runbook": ("Open the runbook", self.runbook(value)),
            "live": LIVE,
            "report": ("Open the agent's reports", f"{self.site.reports_url}/?{column.source}=${{__value.text}}"),
        }
        wanted = [each for each in column.link.split() if each != "report" or self.site.reports_url]
        return [known.get(each, (f"Open {each}", self.board_link(each, value))) for each in wanted]

    def _value(self, alert: Alert, panel: Panel) -> float | None:
        """The first threshold, if it is of what the panel shows; of a number of things, else, a single one."""
        name, threshold = next(iter(alert.thresholds.items()), ("", None))
        found = None
        if threshold is not None and UNITS.get(threshold.unit, "short") == panel.unit:
            found = alerting.thresholds(alert, self.site)[name]
        return 1.0 if panel.unit == "short" and not found else found

    def runbook(self, alert: str) -> str:
        """The address of an alert's runbook."""
        return f"{self.site.runbook_url}/{alert}.md"

    def board_link(self, board: str, instance: str) -> str:
        """The address of another dashboard for one process, with this one's time and choices."""
        chosen = "&".join(f"${{{name}:queryparam}}" for name in self.site.grouping)
        carried = f"${{__url_time_range}}&${{datasource:queryparam}}&{chosen}"
        return f"/d/{self.uid(board)}?{carried}&var-instance={instance}"

    def drill_down(self, target: Target) -> str:
        """The dashboard that says more of the process in a series; empty where it names none."""
        if "{{instance}}" not in target.legend:
            return ""
        if self.board.name == "debug":
            return "devices"
        return "devices" if "{{device}}" in target.legend and self.board.name != "devices" else "debug"


@functools.cache
def sentences() -> dict[str, str]:
    """Returns what each type of finding is."""
    rows = tomllib.loads((resources.files("jaxobs.findings") / "kinds.toml").read_text(encoding="utf-8"))
    return {name: row["about"] for name, row in rows.items()}


def _title(label: str) -> str:
    return label.replace("_", " ").capitalize()
