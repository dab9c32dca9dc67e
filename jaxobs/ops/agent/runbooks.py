"""Which runbook an alert has, and which diagnoses can explain it: one explicit table, in `runbooks.toml`.

A test compares it with the declared alerts and with the signs of the diagnoses: a new alert without a row fails it.
"""

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from jaxobs.base.links import UNKNOWN_ALERT, runbook_url
from jaxobs.ops.agent.report import Cause as ReportedCause
from jaxobs.ops.diagnosis.known import known
from jaxobs.ops.diagnosis.result import Cause
from jaxobs.ops.monitoring import alerting, promql
from jaxobs.ops.monitoring.generate.runbooks import human
from jaxobs.ops.monitoring.rule_types import Alert
from jaxobs.ops.monitoring.site import Site

_GAP = re.compile(r"`?<([a-z][a-z_0-9]*)>`?")

_PLACE = re.compile(r'"scope-(\d+)"')

GENERAL = "general triage"
"""The runbook of an alert that is not in the table."""


@dataclass(frozen=True, slots=True)
class Row:
    """Faults that can explain an alert."""

    causes: tuple[str, ...] = ()
    """Diagnoses, the likely ones first."""
    impacts: tuple[str, ...] = ()
    """Any fault that does this to the job explains it as well: one that ended a process explains that it is gone."""


def _table() -> dict[str, Row]:
    written = tomllib.loads((resources.files(__package__) / "runbooks.toml").read_text(encoding="utf-8"))
    groups: dict[str, list[str]] = {f"@{name}": ids for name, ids in written["groups"].items()}
    rows = {}
    for alert, row in written["alerts"].items():
        causes = [name for each in row.get("causes", ()) for name in groups.get(each, [each])]
        rows[alert] = Row(tuple(causes), tuple(row.get("impacts", ())))
    return rows


TABLE: Mapping[str, Row] = _table()
"""Rows by the alert's name."""


@functools.cache
def declared() -> Mapping[str, Alert]:
    """The alerts that jaxobs brings, by name; of one with several windows the first."""
    found: dict[str, Alert] = {}
    for each in alerting.declared(Site()):
        found.setdefault(each.name, each)
    return found


def page(alert: str) -> str:
    """Returns the address of an alert's runbook; of one that is not known, of the page about this agent."""
    return runbook_url(alert) if alert in TABLE else UNKNOWN_ALERT


def explains(cause: Cause | ReportedCause, alert: str) -> bool | None:
    """Returns whether a fault can explain an alert; None for an alert that is not in the table: nobody knows."""
    row = TABLE.get(alert)
    if row is None:
        return None
    return cause.id in row.causes or cause.impact in row.impacts or bool({*cause.consequences} & {*row.causes})


def expected(alert: str) -> tuple[str, ...]:
    """Returns the diagnoses that can explain an alert, the likely ones first; all for one that is not in the table."""
    row = TABLE.get(alert)
    if row is None:
        return tuple(known())
    by_impact = [name for name, each in known().items() if each.impact in row.impacts]
    return tuple(dict.fromkeys((*row.causes, *by_impact)))


def filled(expr: str, alert: Alert, scope: Mapping[str, str]) -> str:
    """Returns an expression of a runbook for the series with these labels.

    Values come from outside and may look like a gap of the expression: they are put in last, quoted.
    """
    thresholds = {name: each.value for name, each in alert.thresholds.items()}
    names = sorted(scope)
    places = ", ".join(f'{name}="scope-{number}"' for number, name in enumerate(names))
    text = promql.filled(expr, places, thresholds)
    return _PLACE.sub(lambda place: promql.quoted(scope[names[int(place[1])]]), text)


def told(text: str, alert: Alert) -> str:
    """Returns a text of a runbook with the values of the thresholds in it."""

    def value(gap: re.Match[str]) -> str:
        known = alert.thresholds.get(gap[1])
        return gap[0] if known is None else human(known.value, known.unit)

    return _GAP.sub(value, text)
