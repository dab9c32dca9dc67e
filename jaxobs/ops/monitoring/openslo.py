"""Objectives in files: the part of OpenSLO v1 that jaxobs reads and writes (https://github.com/OpenSLO/OpenSLO).

One YAML document for each objective, of kind `SLO` with one ratio metric and one rolling window. Its queries count what
happened within five minutes and leave the label `job` alone; the longer windows are made of that. `{@}` in a selector
is filled with the matchers of the site's targets. What OpenSLO has no place for is in annotations: `jaxobs/unit`,
what is counted, and `jaxobs/least`, how many have to happen before an alert may tell.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, Literal

from jaxobs.base.errors import MissingExtraError, SettingError
from jaxobs.ops import given_files
from jaxobs.ops.monitoring import promql, yaml_text
from jaxobs.ops.monitoring.objective_types import Objective

UNIT, LEAST = "jaxobs/unit", "jaxobs/least"
OWN_LABELS = ("severity", "slo", "short", "long", "exhaustion", "job", "instance", "alertname", "phase")
"""Labels that alerts have: an objective's labels cannot take their place."""

_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_PERIODS = {"1w": "7d", "2w": "14d", "4w": "28d"}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(each.capitalize() for each in rest)


class _Part:
    __pydantic_config__: ClassVar[Mapping[str, Any]] = {
        "extra": "forbid", "allow_inf_nan": False, "alias_generator": _camel,
    }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Query(_Part):
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source(_Part):
    spec: _Query
    type: Literal["Prometheus"] = "Prometheus"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Metric(_Part):
    metric_source: _Source

    @property
    def query(self) -> str:
        return self.metric_source.spec.query.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ratio(_Part):
    total: _Metric
    bad: _Metric | None = None
    good: _Metric | None = None
    counter: Literal[False] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _IndicatorSpec(_Part):
    ratio_metric: _Ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class _Indicator(_Part):
    spec: _IndicatorSpec
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window(_Part):
    duration: Literal["7d", "14d", "28d", "30d", "1w", "2w", "4w"]
    is_rolling: Literal[True]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target(_Part):
    target: Decimal | None = None
    target_percent: Decimal | None = None
    display_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spec(_Part):
    service: str
    indicator: _Indicator
    time_window: tuple[_Window]
    budgeting_method: Literal["Occurrences"]
    objectives: tuple[_Target]
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Metadata(_Part):
    name: str
    display_name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Document(_Part):
    api_version: Literal["openslo/v1"]
    kind: Literal["SLO"]
    metadata: _Metadata
    spec: _Spec


def read(path: Path) -> tuple[Objective, ...]:
    """Returns the objectives of a file.

    Raises:
      SettingError: it cannot be read, is not YAML, or holds what is not of the format; with the objective, the place in
        it and the value.
      MissingExtraError: PyYAML, pydantic or the parser of PromQL is not installed.
    """
    try:
        import pydantic
        import yaml  # noqa: F401 - asked for here to name the option
    except ImportError as error:
        raise MissingExtraError("jaxobs generate --slos", str(error.name), "grafana") from error
    written = given_files.text(path)
    try:
        documents = [each for each in yaml_text.load(written) if each is not None]
    except ValueError as error:
        raise SettingError(f"{path} is not valid YAML: {error}.") from error
    adapter = pydantic.TypeAdapter(_Document)
    found: dict[str, Objective] = {}
    for number, document in enumerate(documents, 1):
        where = f"{path}, document {number}{_named(document)}"
        try:
            objective = _objective(adapter.validate_python(document))
        except pydantic.ValidationError as error:
            unknown = ", or is a part of OpenSLO that jaxobs does not support"
            raise given_files.mistakes(error, where, unknown) from error
        except ValueError as error:
            raise SettingError(f"{where}: {error}") from error
        if objective.alert in found:
            raise SettingError(
                f"{where}: `metadata.name` is {objective.name!r}, which results in the same alert {objective.alert} as "
                f"{found[objective.alert].name!r} before it."
            )
        found[objective.alert] = objective
    return tuple(found.values())


def text(objectives: Iterable[Objective], what: str) -> str:
    """Returns the objectives as a file that `read` takes.

    Args:
      what: the kind that `jaxobs generate` takes, for the first line.
    """
    return yaml_text.dump(*(_document(each) for each in objectives), what=what)


def _document(objective: Objective) -> dict[str, Any]:
    def metric(query: str) -> dict[str, Any]:
        return {"metricSource": {"type": "Prometheus", "spec": {"query": query}}}

    return {
        "apiVersion": "openslo/v1",
        "kind": "SLO",
        "metadata": {
            "name": objective.name,
            "displayName": objective.title,
            **({"labels": dict(objective.labels)} if objective.labels else {}),
            "annotations": {UNIT: objective.unit, LEAST: str(objective.least)},
        },
        "spec": {
            "description": objective.text(),
            "service": objective.service,
            "budgetingMethod": "Occurrences",
            "timeWindow": [{"duration": objective.period, "isRolling": True}],
            "objectives": [{"target": float(objective.target)}],
            "indicator": {
                "metadata": {"name": objective.name},
                "spec": {
                    "ratioMetric": {"counter": False, "bad": metric(objective.bad), "total": metric(objective.total)}
                },
            },
        },
    }


def _objective(document: _Document) -> Objective:
    metadata, spec = document.metadata, document.spec
    ratio, title = spec.indicator.spec.ratio_metric, metadata.display_name or metadata.name
    for label in metadata.labels:
        if not _LABEL.fullmatch(label) or label in OWN_LABELS:
            raise ValueError(f"`metadata.labels.{label}` cannot be a label of its alerts.")
    known = {UNIT, LEAST}
    for name in metadata.annotations:
        if name.startswith("jaxobs/") and name not in known:
            raise ValueError(f"`metadata.annotations.{name}` is unknown. Known: {', '.join(sorted(known))}.")
    return Objective(
        name=metadata.name, title=title, description=spec.description or f"{title}.", service=spec.service,
        target=_target(spec.objectives[0]), bad=_bad(ratio), total=_checked("total", ratio.total),
        unit=metadata.annotations.get(UNIT, "events"), least=_least(metadata.annotations.get(LEAST, "100")),
        period=_PERIODS.get(spec.time_window[0].duration, spec.time_window[0].duration), labels=metadata.labels,
    )  # fmt: skip


def _target(given: _Target) -> Decimal:
    if (given.target is None) == (given.target_percent is None):
        raise ValueError("`spec.objectives.0` must have either `target` or `targetPercent`.")
    if given.target is not None:
        name, value, most = "target", given.target, 1
    else:
        assert given.target_percent is not None
        name, value, most = "targetPercent", given.target_percent, 100
    if not 0 < value < most:
        raise ValueError(f"`spec.objectives.0.{name}` is {value}: it must be between 0 and {most}.")
    return value / most


def _least(given: str) -> Decimal:
    if not re.fullmatch(r"\d{1,12}(\.\d{1,6})?", given):
        raise ValueError(f"`metadata.annotations.{LEAST}` is {given!r:.80}: it must be a number, such as '100'.")
    return Decimal(given)


def _bad(ratio: _Ratio) -> str:
    """Returns the query of what is bad: all but the good, if the file counts the good."""
    if (ratio.bad is None) == (ratio.good is None):
        raise ValueError("`spec.indicator.spec.ratioMetric` must have `total` and either `bad` or `good`.")
    if ratio.bad is not None:
        return _checked("bad", ratio.bad)
    assert ratio.good is not None
    total, good = ratio.total.query, _checked("good", ratio.good)
    return f"({total})\n- on (job) (({good})\n  or on (job) 0 * ({total}))"


def _checked(name: str, metric: _Metric) -> str:
    """Returns the query, if the rules can be made of it."""
    place = f"spec.indicator.spec.ratioMetric.{name}.metricSource.spec.query"
    try:
        filled = promql.filled(metric.query, 'job=~".+"', grouping=("job",))
    except KeyError as error:
        raise ValueError(f"`{place}` has the threshold {error}, which only alerts have: {metric.query}") from error
    try:
        tree = promql.parse(filled)
    except ValueError as error:
        raise ValueError(f"`{place}`: {error}") from error
    if not _leaves_job(tree):
        raise ValueError(
            f"`{place}` must preserve the label `job` and no other, as `sum by (job) (...)` does: {metric.query}"
        )
    wrong = next((each for each in _ranges(tree) if each != timedelta(minutes=5)), None)
    if wrong is not None:
        raise ValueError(
            f"`{place}` looks back {wrong.total_seconds():g} s: write [5m], from which the other windows are built: "
            f"{metric.query}"
        )
    return metric.query


def _leaves_job(node: Any) -> bool:
    kind = type(node).__name__
    if kind == "AggregateExpr":
        modifier = node.modifier
        return modifier is not None and str(modifier.type).endswith("By") and list(modifier.labels) == ["job"]
    if kind in ("ParenExpr", "UnaryExpr"):
        return _leaves_job(node.expr)
    if kind == "BinaryExpr":
        sides = [each for each in (node.lhs, node.rhs) if type(each).__name__ != "NumberLiteral"]
        return bool(sides) and all(map(_leaves_job, sides))
    return kind == "Call" and bool(node.args) and _leaves_job(node.args[0])


def _ranges(tree: Any) -> Iterator[timedelta]:
    import promql_parser

    found: list[timedelta] = []

    def visit(node: Any) -> bool:
        if isinstance(node, promql_parser.MatrixSelector | promql_parser.SubqueryExpr):
            found.append(node.range or timedelta())
        return True

    promql_parser.walk(tree, visit)
    yield from found


def _named(document: Any) -> str:
    metadata = document.get("metadata") if isinstance(document, Mapping) else None
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return f" ({name!s:.80})" if name is not None else ""
