"""What a dashboard is: rows of panels, as plain data, from which Grafana's JSON is generated.

Queries are PromQL with the gaps of `jaxobs.ops.monitoring.rule_types`; the dashboard's variables fill them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

KINDS = ("timeseries", "stat", "gauge", "bargauge", "table", "heatmap", "state-timeline", "status-history", "text")
NEEDS = (
    "", "accelerator", "gpu", "tpu", "several_processes", "serving", "generation", "steps", "items", "input",
    "persistent_cache", "checkpoints", "transfers", "profiles", "trouble", "hours",
)  # fmt: skip
"""What has to be there for a panel to show anything; empty where any program will do.

`trouble`: a fault, or a rule that fires; `hours`: hours of work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One query."""

    expr: str
    legend: str = ""
    """As `{{function}}`; only of labels that the query leaves."""
    instant: bool = False
    """Only now; always so in a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table: the label or the query (by its letter) that fills it."""

    source: str
    title: str
    unit: str = "none"
    link: str = ""
    """`runbook` or the name of a dashboard: where a click on a cell leads."""
    mappings: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """As those of a panel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel. Its key is its identity: links and alerts point to it."""

    key: str
    title: str
    description: str
    """What it shows, how to read it, and what is good."""
    kind: str
    unit: str
    """Grafana's id of the unit: `s`, `bytes`, `percentunit`, `short`, ..."""
    targets: tuple[Target, ...]
    width: int = 12
    """Of 24."""
    height: int = 8
    needs: str = ""
    alert: str = ""
    """The alert whose first threshold is drawn, and is the colour's."""
    least: float | None = None
    most: float | None = None
    decimals: int | None = None
    stacked: bool = False
    good: str = "low"
    """For colours: `low`, `high` or `none`."""
    columns: tuple[Column, ...] = ()
    mappings: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Text and colour by value."""
    colors: Mapping[str, str] = field(default_factory=dict)
    """Of series, by their legend."""
    no_value: str = ""
    """What stands there when nothing is found, which is then as it should be."""
    content: str = ""
    """Markdown of a `text`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]
    collapsed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A choice beside data source, job and instance, which every dashboard has."""

    name: str
    label: str
    query: str
    """As `label_values(jax_function_calls_total{@}, function)`; empty for a number that the user types."""
    default: str = ".+"
    """For a number, the name of what a site says of it: `accelerator_hour`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """Marks in time on every panel."""

    name: str
    expr: str
    title: str
    color: str = "blue"
    value_is_time: bool = False
    """The value tells when it was, in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One dashboard. Its address is `jaxobs-<name>`."""

    name: str
    title: str
    description: str
    rows: tuple[Row, ...]
    variables: tuple[Variable, ...] = ()
    annotations: tuple[Annotation, ...] = ()
