"""Dashboards as plain data: rows of panels, from which Grafana's JSON is generated.

Queries are PromQL with the gaps of `jaxobs.ops.monitoring.rule_types`; the dashboard's variables fill them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

KINDS = ("timeseries", "stat", "gauge", "bargauge", "table", "heatmap", "state-timeline", "status-history", "text")
NEEDS = (
    "", "accelerator", "gpu", "tpu", "several_processes", "serving", "generation", "steps", "items", "input",
    "persistent_cache", "checkpoints", "transfers", "profiles", "trouble", "hours",
)  # fmt: skip
"""Things without one of which a panel shows nothing; empty if any program will do.

`trouble`: a fault, or a rule that fires; `hours`: hours of work."""


class _Declared:
    """Base of the types that a YAML file declares: pydantic refuses fields that the class lacks."""

    __slots__ = ()
    __pydantic_config__: ClassVar[Mapping[str, str]] = {"extra": "forbid"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target(_Declared):
    """A query of a panel."""

    expr: str
    legend: str = ""
    """Names of the lines, as `{{function}}`; only of labels that the query leaves."""
    instant: bool = False
    """Whether only the last value is asked for; always so in a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(_Declared):
    """A column of a table: the label or the query (by its letter) that fills it."""

    source: str
    title: str
    unit: str = "none"
    link: str = ""
    """Places where a click on a cell leads: `runbook`, `report`, `live` (the process's page), or dashboards."""
    explained: bool = False
    """Whether types of findings are shown as the sentences of `findings/kinds.toml`."""
    good_from: float | None = None
    """Value from which a cell is green, and below which it is red."""
    good_to: float | None = None
    """Value from which a cell is red, and below which it is green."""
    mappings: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Text and colour by value, as those of a panel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel(_Declared):
    """A panel. Its key is its identity: links and alerts point to it."""

    key: str
    title: str
    description: str
    """Sentences: the figure, how to read it, and which values are good."""
    kind: str
    unit: str
    """Grafana's id of the unit: `s`, `bytes`, `percentunit`, `short`, ..."""
    targets: tuple[Target, ...]
    width: int = 12
    """Columns of the 24 that a dashboard has."""
    height: int = 8
    needs: str = ""
    alert: str = ""
    """The alert whose first threshold is drawn, and colours the values."""
    objective: str = ""
    """The objective whose target, or what may miss it, is drawn next to that: no figure that misses it is green."""
    good_from: float | None = None
    """Value below which the figure is bad, if neither an alert nor an objective says it."""
    least: int | float | None = None
    most: int | float | None = None
    decimals: int | None = None
    stacked: bool = False
    good: str = "low"
    """Values that are good, for the colours: `low`, `high` or `none`."""
    columns: tuple[Column, ...] = ()
    mappings: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Text and colour by value."""
    colors: Mapping[str, str] = field(default_factory=dict)
    """Units of series, by their legend."""
    no_value: str = ""
    """Text that is shown if nothing is found, which is then as it should be; without it, what `needs` says."""
    content: str = ""
    """Markdown of a `text`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(_Declared):
    """Panels under a heading."""

    title: str
    panels: tuple[Panel, ...]
    collapsed: bool = False
    repeat: str = ""
    """Variable for each of whose values the row is there once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable(_Declared):
    """A choice next to data source, job and instance, which every dashboard has."""

    name: str
    label: str
    query: str
    """As `label_values(jax_function_calls_total{@}, function)`; empty for a number that the user types."""
    default: str = ".+"
    """For a number, the name of the site's choice that sets it: `accelerator_hour`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation(_Declared):
    """Marks in time on every panel."""

    name: str
    expr: str
    title: str
    color: str = "blue"
    value_is_time: bool = False
    """Whether the value is the time of the mark, in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board(_Declared):
    """A dashboard. Its address is `jaxobs-<name>`."""

    name: str
    title: str
    description: str
    rows: tuple[Row, ...]
    variables: tuple[Variable, ...] = ()
    annotations: tuple[Annotation, ...] = ()
