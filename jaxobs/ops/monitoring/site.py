"""The site file: a small TOML or YAML file with which a place that runs jaxobs changes what is generated.

job = "train-.*"                    # the targets: a regular expression for the label `job`
matchers = {cluster = "a"}          # further labels of the targets
functions = ["trainer.*"]           # only these functions
runbook_url = "https://wiki.example.org/jaxobs"
slos = "slos.yaml"                  # objectives of your own, next to this file

[prices]
accelerator_hour = 2.4

[alerts.JaxRecompilationStorm]
for = "10m"
thresholds = {compilations = 20}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal

from jaxobs.base.errors import MissingExtraError, SettingError
from jaxobs.base.links import page_url
from jaxobs.ops import given_files
from jaxobs.ops.monitoring import latency_objectives, openslo, promql, yaml_text
from jaxobs.ops.monitoring.objective_types import Objective
from jaxobs.ops.monitoring.promql import quoted

RUNBOOKS = page_url("runbooks")
RECEIVERS = ("pager", "tickets")
"""Receivers of Alertmanager's configuration whose destinations a site names."""
WATCHDOG = "watchdog"
"""Receiver of an alert that always fires: what expects it raises an alarm when it does not come. Optional."""

_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_DURATION = re.compile(r"(?=\d)(\d+d)?(\d+h)?(\d+m)?(\d+s)?")
_URL = re.compile(r"(https?://\S+|/\S*)")


class _Strict:
    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid", "allow_inf_nan": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertChoice(_Strict):
    """Changes to an alert."""

    enabled: bool = True
    """Whether the alert is generated. An alert of the extended set is generated if the file names it."""
    severity: Literal["critical", "warning", "info"] | None = None
    """Overrides the alert's own severity."""
    for_: str | None = None
    """How long the condition must hold, such as `10m`; `for` in the file."""
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """Values by name; the alert's runbook lists them with their bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveChoice(_Strict):
    """Changes to a service level objective."""

    enabled: bool = True
    """Whether the objective's rules and alerts are generated."""
    target: float | None = None
    """Share that must be good, such as 0.95."""
    period: Literal["7d", "14d", "28d", "30d"] | None = None
    """Period of its error budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices(_Strict):
    """Prices, for the panels about costs; without them, these use the dashboard's variable."""

    accelerator_hour: float = 1.0
    """Price of one accelerator for an hour, in `currency`."""
    currency: str = "USD"
    """Currency code according to ISO 4217."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site(_Strict):
    """The settings; the defaults are what is committed."""

    job: str = ".+"
    """Regular expression for the targets' label `job`."""
    matchers: Mapping[str, str] = field(default_factory=dict)
    """Additional labels of the targets and their values."""
    grouping: tuple[str, ...] = promql.GROUPING
    """Labels that distinguish jobs; a label that your targets don't have changes nothing."""
    functions: tuple[str, ...] = ()
    """Regular expressions for the functions in the generated files; without any, all functions."""
    runbook_url: str = RUNBOOKS
    """Address of the runbooks; `/<AlertName>.md` is appended."""
    grafana_url: str = ""
    """Address of Grafana; `/d/jaxobs-<dashboard>` is appended. Without it, nothing links to panels."""
    event_log: str = "EVENTLOG"
    """Path of the event log on the machines or in the pods of jobs, for the commands of runbooks."""
    agent_url: str = "http://127.0.0.1:9465"
    """Address of `jaxobs agent`, to which Alertmanager sends alerts; an empty one leaves the agent out."""
    reports_url: str = ""
    """Address at which people reach the agent; alerts link to the incidents of their job there, unless it is empty."""
    receivers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Destinations of `pager` and `tickets`, as Alertmanager's configuration has them, such as
    `{"pager": {"pagerduty_configs": [...]}}`. Alertmanager refuses the file if a receiver lacks a destination. If you
    name a receiver `watchdog`, an alert is generated that always fires, and only this receiver gets it."""
    scrape_interval: str = "30s"
    """How often Prometheus scrapes; the dashboards' shortest interval."""
    dashboards: Literal["v1", "v2"] = "v1"
    """Grafana's format: the classic one, which 10 to 13 read, or the manifest of 13."""
    native_histograms: bool = False
    """Whether Prometheus stores histograms as native ones, so that there are no `_bucket` series."""
    prices: Prices = Prices()
    """Prices for the panels about costs."""
    extended: bool = False
    """Whether all alerts of the extended set are generated."""
    alerts: Mapping[str, AlertChoice] = field(default_factory=dict)
    """Changes to alerts, by name; naming an alert of the extended set switches it on."""
    objectives: Mapping[str, ObjectiveChoice] = field(default_factory=dict)
    """Changes to objectives, by name."""
    latency: Mapping[str, float] = field(default_factory=dict)
    """Seconds within which requests are answered, by route; must be bounds of buckets of `jax_request_seconds`. Each
    route here gets an objective."""
    slos: tuple[Objective, ...] = ()
    """Your own objectives; in the file, the path of an OpenSLO file relative to it."""

    def __post_init__(self) -> None:
        for name in ("job", "functions"):
            for each in _texts(getattr(self, name)):
                _regex(name, each)
        for label in self.matchers:
            if not _LABEL.fullmatch(label) or label in ("job", "instance"):
                raise SettingError(f"matchers: {label!r} is not a label to select by; `job` has its own setting.")
        for label in self.grouping:
            if not _LABEL.fullmatch(label) or label == "instance":
                raise SettingError(f"grouping: {label!r} is not a label that distinguishes jobs.")
        if "job" not in self.grouping:
            raise SettingError("grouping: `job` must be one of the labels.")
        for name in ("runbook_url", "grafana_url", "agent_url", "reports_url"):
            if not _URL.fullmatch(getattr(self, name)) and (getattr(self, name) or name == "runbook_url"):
                raise SettingError(
                    f"{name}: {getattr(self, name)!r} is not a valid address; it must begin with http:// or https://."
                )
            object.__setattr__(self, name, getattr(self, name).rstrip("/"))
        if "'" in self.event_log or "{{" in self.event_log:
            raise SettingError(f"event_log: {self.event_log!r} is not a path that a command can have in quotes.")
        if unknown := self.receivers.keys() - {*RECEIVERS, WATCHDOG}:
            known = ", ".join((*RECEIVERS, WATCHDOG))
            raise SettingError(f"receivers.{min(unknown)}: unknown. Receivers: {known}.")
        _duration("scrape_interval", self.scrape_interval)
        try:
            latency_objectives.objectives(self.latency)
        except ValueError as error:
            raise SettingError(str(error)) from error
        for name, objective in self.objectives.items():
            if objective.target is not None and not 0 < objective.target < 1:
                raise SettingError(f"objectives.{name}.target is {objective.target:g}: it must be between 0 and 1.")
        for alert, choice in self.alerts.items():
            if choice.for_ is not None:
                _duration(f"alerts.{alert}.for", choice.for_)

    def filled(self, expr: str, thresholds: Mapping[str, float] | None = None) -> str:
        """Returns an expression of a rule with the site's targets, functions and grouping put in."""
        return promql.filled(expr, self.targets(), thresholds, function=self.function(), grouping=self.grouping)

    def targets(self) -> str:
        """Returns the matchers of the targets in a rule."""
        return ", ".join([f"job=~{quoted(self.job)}", *self.extra_matchers()])

    def extra_matchers(self) -> list[str]:
        """Returns the matchers beyond the job."""
        return [f"{name}={quoted(value)}" for name, value in sorted(self.matchers.items())]

    def function(self) -> str:
        """Returns the matcher of the functions in a rule; empty for all."""
        return f"function=~{quoted('|'.join(self.functions))}" if self.functions else ""


def read(path: Path) -> Site:
    """Returns the choices of a file: YAML if its name says so, else TOML.

    Raises:
      SettingError: it cannot be read, is neither, or holds what nobody knows; with its place and value.
      MissingExtraError: pydantic, or for YAML PyYAML, is not installed.
    """
    found = _yaml(path) if path.suffix in (".yaml", ".yml") else given_files.toml(path)
    return checked(found, str(path))


def checked(found: Mapping[str, Any], where: str) -> Site:
    """Returns the choices from plain data.

    Raises:
      SettingError: a name is unknown or a value does not fit; with its place and value.
      MissingExtraError: pydantic is not installed.
    """
    try:
        import pydantic
    except ImportError as error:
        raise MissingExtraError("jaxobs generate --site", "pydantic", "grafana") from error
    slos = found.get("slos")
    if slos is not None:
        if not isinstance(slos, str):
            raise SettingError(f"{where}: `slos` is {slos!r:.80}: it must be the path of a file with objectives.")
        found = {**found, "slos": openslo.read(Path(where).parent / slos)}
    alerts = found.get("alerts")
    if isinstance(alerts, Mapping):
        found = {**found, "alerts": {name: _with_for(each) for name, each in alerts.items()}}
    try:
        return pydantic.TypeAdapter(Site).validate_python(found)
    except pydantic.ValidationError as error:
        tables = {"": Site, "alerts": AlertChoice, "objectives": ObjectiveChoice, "prices": Prices}
        known = {name: [each.name.removesuffix("_") for each in fields(table)] for name, table in tables.items()}
        raise given_files.mistakes(error, where, known) from error
    except SettingError as error:
        raise SettingError(f"{where}: {error}") from error


def _with_for(choice: Any) -> Any:
    if not isinstance(choice, Mapping):
        return choice
    return {"for_" if name == "for" else name: each for name, each in choice.items()}


def _yaml(path: Path) -> Mapping[str, Any]:
    try:
        import yaml  # noqa: F401 - asked for here to name the option
    except ImportError as error:
        raise MissingExtraError("jaxobs generate --site", "pyyaml", "grafana") from error
    written = given_files.text(path)
    try:
        documents = yaml_text.load(written)
        if len(documents) > 1:
            raise ValueError("it has several documents")
        found = documents[0] if documents else None
    except ValueError as error:
        raise SettingError(f"{path} is not valid YAML: {error}.") from error
    if not isinstance(found, Mapping | None):
        raise SettingError(f"{path} contains a {type(found).__name__}, but names and values are expected.")
    return found or {}


def _texts(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


def _regex(name: str, text: str) -> None:
    try:
        re.compile(text)
    except re.error as error:
        raise SettingError(f"{name}: {text!r} is not a valid regular expression: {error}.") from error
    if not text:
        raise SettingError(f"{name}: an empty regular expression selects nothing; `.+` selects everything.")


def _duration(name: str, text: str) -> None:
    if not _DURATION.fullmatch(text):
        raise SettingError(f"{name}: {text!r} is not a valid duration; write it as 90s, 5m, 1h30m or 7d.")
