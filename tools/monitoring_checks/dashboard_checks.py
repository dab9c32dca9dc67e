"""Checks of a dashboard's JSON: the rules of Grafana's linter, and mistakes that these let through.

A check takes a `Seen`, which is the same for the classic format and the manifest, and yields sentences on what is
wrong. The numbers are those of the linter's rules in their order; from 18 on they are ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jaxobs.metrics.catalogue import METRICS
from jaxobs.ops.monitoring import promql
from jaxobs.ops.monitoring.drawing import sdk
from tools.monitoring_checks import label_flow

NO_UNITS = frozenset({
    "acres", "candela", "currencyBGN", "currencyILS", "currencyMYR", "currencyPYG", "currencyTRY", "currencyUYU",
    "currencyXPF", "epm", "eps", "hectares", "mohm", "mwatth", "recpm", "recps", "reqpm", "rotghz", "rotkhz",
    "rotmhz", "rowspm", "rowsps", "sishort",
})  # fmt: skip
"""Units that Grafana knows and its linter does not."""

_QUOTED = re.compile(r'("(?:[^"\\]|\\.)*")')
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::\w+)?\}|(\w+))")

UNITS = sdk.unit_ids() - NO_UNITS
ANGULAR = {"graph", "singlestat", "table-old"}
BUILT_IN = {
    "__rate_interval": "5m", "__range": "6h", "__interval": "1m", "__url_time_range": "", "__value": "", "__field": "",
}  # fmt: skip
RATES = {"rate", "irate", "increase"}
COUNTERS = {
    *(metric.name for metric in METRICS if metric.kind == "counter"), *label_flow.agent_metrics(),
    *label_flow.OTHER_COUNTERS,
    *(
        metric.name + suffix
        for metric in METRICS if metric.kind in ("histogram", "summary")
        for suffix in ("_count", "_sum", "_bucket")
    ),
}  # fmt: skip
MEASURED = {
    "bytes": {"bytes"}, "seconds": {"s"}, "ratio": {"percentunit"}, "joules": {"joule"}, "watts": {"watt"},
    "celsius": {"celsius"}, "hertz": {"hertz"},
}  # fmt: skip
"""Grafana's units by those of the catalogue."""


@dataclass
class Query:
    """A query of a panel."""

    ref: str
    expr: str
    legend: str
    source: Any


@dataclass
class Shown:
    """A panel."""

    id: int
    kind: str
    title: str
    description: str
    source: Any
    queries: list[Query]
    unit: str
    columns: dict[str, str]
    position: Mapping[str, int]
    options: Mapping[str, Any]
    defaults: Mapping[str, Any]
    text: str
    """All of it, for variables."""


@dataclass
class Chosen:
    """A variable."""

    name: str
    kind: str
    label: str
    query: str
    source: Any
    refresh: Any
    multi: bool
    all_value: str | None
    current: Any


@dataclass
class Seen:
    """A dashboard, whatever its format."""

    title: str
    uid: str
    editable: Any
    refresh: str
    timezone: str
    variables: list[Chosen]
    panels: list[Shown]
    links: list[dict[str, Any]]
    annotations: list[tuple[str, Any]]
    raw: dict[str, Any]
    known: dict[str, label_flow.Labels] = field(default_factory=label_flow.series)

    def filled(self, expr: str) -> str:
        """A query with its variables put in as the linter does."""
        values = {each.name: _sample(each) for each in self.variables}
        return expanded(expr, BUILT_IN | values)


def expanded(expr: str, values: Mapping[str, str]) -> str:
    """The expression with Grafana's variables put in where they stand outside quotes, as its linter does.

    Raises:
      KeyError: a variable has no value.
    """
    parts = _QUOTED.split(expr)
    for place in range(0, len(parts), 2):
        parts[place] = _VARIABLE.sub(lambda found: values[found[1] or found[2]], parts[place])
    return "".join(parts)


def _sample(variable: Chosen) -> str:
    value = (variable.current or {}).get("value")
    return str(value) if value else variable.name


def classic(raw: dict[str, Any]) -> Seen:
    """Returns the dashboard of the classic JSON."""
    panels = [
        each for panel in raw["panels"] for each in ([*panel.get("panels", [])] if panel["type"] == "row" else [panel])
    ]
    return Seen(
        title=raw["title"], uid=raw["uid"], editable=raw.get("editable"), refresh=raw["refresh"],
        timezone=raw["timezone"],
        variables=[
            Chosen(
                each["name"], each["type"], each.get("label", ""), each.get("query", ""),
                each.get("datasource", {}).get("uid"),
                each.get("refresh"), each.get("multi", False), each.get("allValue"), each.get("current"),
            )
            for each in raw["templating"]["list"]
        ],
        panels=[_classic_panel(each) for each in panels],
        links=raw["links"],
        annotations=[(each["expr"], each["datasource"]["uid"]) for each in raw["annotations"]["list"]],
        raw=raw,
    )  # fmt: skip


def _classic_panel(panel: dict[str, Any]) -> Shown:
    queries = [
        Query(each["refId"], each["expr"], each["legendFormat"], each["datasource"]["uid"]) for each in panel["targets"]
    ]
    return _shown(
        panel,
        panel["type"],
        panel["datasource"]["uid"],
        queries,
        panel["gridPos"],
        panel["options"],
        panel["fieldConfig"],
    )


def _shown(
    panel: dict[str, Any], kind: str, source: Any, queries: list[Query], position: Any, options: Any, config: Any
) -> Shown:
    columns = {
        each["matcher"]["options"]: prop["value"]
        for each in config["overrides"] for prop in each["properties"] if prop["id"] == "unit"
    }  # fmt: skip
    return Shown(
        panel["id"], kind, panel["title"], panel["description"], source, queries, config["defaults"].get("unit", ""),
        columns, position, options, config["defaults"], str(panel),
    )  # fmt: skip


def manifest(raw: dict[str, Any]) -> Seen:
    """Returns the dashboard of the resource, as the linter's adapter reads it."""
    spec = raw["spec"]
    position, top = {}, 0
    for row in spec["layout"]["spec"]["rows"]:
        items = [each["spec"] for each in row["spec"]["layout"]["spec"]["items"]]
        for item in items:
            position[item["element"]["name"]] = {
                "x": item["x"], "y": top + 1 + item["y"], "w": item["width"], "h": item["height"],
            }  # fmt: skip
        top += 1 + max(item["y"] + item["height"] for item in items)
    return Seen(
        title=spec["title"], uid=raw["metadata"]["name"], editable=spec.get("editable"),
        refresh=spec["timeSettings"]["autoRefresh"], timezone=spec["timeSettings"]["timezone"],
        variables=[_manifest_variable(each) for each in spec["variables"]],
        panels=[_manifest_panel(each["spec"], position[name]) for name, each in spec["elements"].items()],
        links=spec["links"],
        annotations=[
            (each["spec"]["query"]["spec"]["expr"], each["spec"]["query"]["datasource"]["name"])
            for each in spec["annotations"]
        ],
        raw=raw,
    )  # fmt: skip


def _manifest_variable(variable: dict[str, Any]) -> Chosen:
    spec = variable["spec"]
    if variable["kind"] == "DatasourceVariable":
        return Chosen(spec["name"], "datasource", spec["label"], spec["pluginId"], None, 1, False, None, None)
    assert variable["kind"] == "QueryVariable", "a number in a query would be taken for a series"
    refresh = {"onTimeRangeChanged": 2, "onDashboardLoad": 1}.get(spec["refresh"], 0)
    query = spec["query"]
    return Chosen(
        spec["name"], "query", spec["label"], query["spec"]["query"], query["datasource"]["name"], refresh,
        spec["multi"], spec.get("allValue"), None,
    )  # fmt: skip


def _manifest_panel(spec: dict[str, Any], position: Any) -> Shown:
    queries = [
        Query(each["spec"]["refId"], query["spec"]["expr"], query["spec"]["legendFormat"], query["datasource"]["name"])
        for each in spec["data"]["spec"]["queries"]
        for query in [each["spec"]["query"]]
    ]
    config = spec["vizConfig"]
    source = queries[0].source if queries else None
    return _shown(
        spec, config["group"], source, queries, position, config["spec"]["options"], config["spec"]["fieldConfig"]
    )


def d01(seen: Seen) -> Iterator[str]:
    """The data source variable is the only one, named and labelled as the linter wants it."""
    found = [each for each in seen.variables if each.kind == "datasource"]
    if [(each.name, each.label, each.query) for each in found] != [("datasource", "Data source", "prometheus")]:
        yield f"data source variables are {found}"


def d02_d03(seen: Seen) -> Iterator[str]:
    """Variables for job and instance, several at once, all by `.+`."""
    by_name = {each.name: each for each in seen.variables}
    for name, label in (("job", "Job"), ("instance", "Instance")):
        each = by_name.get(name)
        if each is None or (each.kind, each.label, each.multi, each.all_value, each.source) != (
            "query", label, True, ".+", "$datasource",
        ):  # fmt: skip
            yield f"variable {name} is {each}"


def d04(seen: Seen) -> Iterator[str]:
    """Queries of variables call one of Prometheus' functions on a selector that parses, of a label that is there."""
    for variable in seen.variables:
        if variable.kind == "query":
            call = re.fullmatch(r"label_values\((.+), (\w+)\)", variable.query)
            if call is None:
                yield f"variable {variable.name} asks {variable.query!r}"
            elif call[2] not in label_flow.labels_of(seen.filled(call[1]), seen.known):
                yield f"variable {variable.name} asks for a label that is not there"


def d05(seen: Seen) -> Iterator[str]:
    """Variables are asked for anew when the time range changes."""
    yield from (f"variable {each.name}" for each in seen.variables if each.kind == "query" and each.refresh != 2)


def d06(seen: Seen) -> Iterator[str]:
    """Each panel's data source is the variable."""
    yield from (f"panel {each.title}: {each.source}" for each in seen.panels if each.source != "$datasource")


def d07_d09_d18(seen: Seen) -> Iterator[str]:
    """Title, description, unit and queries on every panel, whatever its kind; a unit on every column of a table."""
    for panel in seen.panels:
        if not panel.title or len(panel.description) < 40 or not panel.queries or not panel.unit:
            yield f"panel {panel.title!r} lacks something"
        if panel.kind == "table" and not panel.columns:
            yield f"table {panel.title!r} has no units for its columns"


def d08_d19(seen: Seen) -> Iterator[str]:
    """Units are known to Grafana and to its linter, and are those of what is measured."""
    for panel in seen.panels:
        for unit in (panel.unit, *panel.columns.values()):
            if unit not in UNITS:
                yield f"panel {panel.title!r}: {unit!r}"
        if panel.kind != "table":
            for query in panel.queries:
                wanted = _measured(seen.filled(query.expr))
                if wanted and panel.unit not in wanted:
                    yield f"panel {panel.title!r} shows {panel.unit} of {wanted}: {query.expr}"


def _measured(expr: str) -> set[str]:
    """The units that an expression over one metric has; empty where it computes something else."""
    names = {each.name for each in promql.selectors(expr)}
    if len(names) != 1 or re.search(r"[*/]|rate\(|count|histogram_quantile|time\(\)", expr):
        return set()
    name = names.pop()
    metric = next((each for each in METRICS if each.name == name), None)
    return MEASURED.get(metric.unit, set()) if metric else set()


def d10_d12(seen: Seen) -> Iterator[str]:
    """Every query is PromQL."""
    for panel, query in _queries(seen):
        try:
            promql.parse(seen.filled(query.expr))
        except ValueError as error:
            yield f"panel {panel.title!r}: {error}"


def d13(seen: Seen) -> Iterator[str]:
    """`rate` and `irate` take `$__rate_interval`, and ranges stand in a call."""
    for panel, query in _queries(seen):
        for name, window in re.findall(r"\b(i?rate)\([^()\[\]]*\[([^\]]+)\]", query.expr):
            if window != "$__rate_interval":
                yield f"panel {panel.title!r}: {name} over {window}"


def d14_d15(seen: Seen) -> Iterator[str]:
    """Every selector of every query takes the chosen jobs and processes; in annotations, too."""
    exprs = [(panel.title, query.expr) for panel, query in _queries(seen)] + [
        ("annotation", e) for e, _ in seen.annotations
    ]
    for title, expr in exprs:
        for selector in promql.selectors(seen.filled(expr)):
            matchers = {(each.name, str(each.op), each.value) for each in selector.matchers.matchers}
            if not {("job", "MatchOp.Re", "$job"), ("instance", "MatchOp.Re", "$instance")} <= matchers:
                yield f"{title}: {selector.name}"


def d16_d20(seen: Seen) -> Iterator[str]:
    """A counter stands inside `rate`, `irate` or `increase`, by the catalogue; a gauge stands in none."""
    for panel, query in _queries(seen):
        expr = seen.filled(query.expr)
        inside = _called(promql.parse(expr))
        for name, call in inside:
            if name in COUNTERS and call not in RATES:
                yield f"panel {panel.title!r}: {name} in {call or 'nothing'}"
            if name not in COUNTERS and call in RATES and name not in _natives():
                yield f"panel {panel.title!r}: {call} of {name}"


def _natives() -> set[str]:
    return {*(metric.name for metric in METRICS if metric.kind == "histogram"), *label_flow.OTHER_HISTOGRAMS}


def _called(node: Any, call: str = "") -> Iterator[tuple[str, str]]:
    """The selectors below a node with the function directly around each range."""
    kind = type(node).__name__
    if kind == "VectorSelector":
        yield node.name, ""
    elif kind == "MatrixSelector":
        yield node.vector_selector.name, call
    elif kind == "Call":
        for each in node.args:
            yield from _called(each, node.func.name)
    elif kind == "BinaryExpr":
        yield from _called(node.lhs)
        yield from _called(node.rhs)
    elif hasattr(node, "expr"):
        yield from _called(node.expr)


def d17(seen: Seen) -> Iterator[str]:
    """Nobody edits what is generated."""
    if seen.editable is not False:
        yield f"editable is {seen.editable}"


def d21(seen: Seen) -> Iterator[str]:
    """Metrics, labels, labels in legends and variables are there; no variable is unused."""
    used = set()
    for panel in seen.panels:
        used |= {a or b for a, b in re.findall(r"\$(?:\{(\w+)|(\w+))", panel.text)}
        for query in panel.queries:
            try:
                left = label_flow.labels_of(seen.filled(query.expr), seen.known)
            except ValueError as error:
                yield f"panel {panel.title!r}: {error}"
                continue
            missing = set(re.findall(r"\{\{(\w+)\}\}", query.legend)) - left
            if missing:
                yield f"panel {panel.title!r}: legend with {missing}, but there is {left}"
    for expr, _ in seen.annotations:
        label_flow.labels_of(seen.filled(expr), seen.known)
        used |= {a or b for a, b in re.findall(r"\$(?:\{(\w+)|(\w+))", expr)}
    names = {each.name for each in seen.variables}
    unknown, idle = used - names - set(BUILT_IN), names - used
    if unknown or idle:
        yield f"variables unknown: {unknown}, unused: {idle}"


def d22(seen: Seen) -> Iterator[str]:
    """An address of at most 40 letters; titles and numbers of panels once each; nothing overlaps or leaves the grid."""
    if not re.fullmatch(r"[a-z-]{1,40}", seen.uid):
        yield f"uid {seen.uid}"
    for what in ("id", "title"):
        values = [getattr(each, what) for each in seen.panels]
        if len(set(values)) != len(values) or 0 in values:
            yield f"{what}s of panels: {values}"
    taken: dict[tuple[int, int], str] = {}
    for panel in seen.panels:
        at = panel.position
        if at["x"] < 0 or at["x"] + at["w"] > 24:
            yield f"panel {panel.title!r} leaves the grid"
        for cell in ((x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])):
            if taken.setdefault(cell, panel.title) != panel.title:
                yield f"panels {panel.title!r} and {taken[cell]!r} overlap"
                break


def d23(seen: Seen) -> Iterator[str]:
    """No panel of the Angular days; the newest schema."""
    yield from (f"panel {each.title!r}" for each in seen.panels if each.kind in ANGULAR)
    if "schemaVersion" in seen.raw and seen.raw["schemaVersion"] != 42:
        yield "schemaVersion"


def d24(seen: Seen) -> Iterator[str]:
    """No more often than half a minute; in UTC."""
    if seen.refresh not in ("30s", "1m", "5m") or seen.timezone != "utc":
        yield f"{seen.refresh}, {seen.timezone}"


def d25(seen: Seen) -> Iterator[str]:
    """A dropdown by tag leads to the other dashboards and takes time and variables along."""
    if not any(
        each["type"] == "dashboards" and each["asDropdown"] and each["keepTime"] and each["includeVars"]
        and each["tags"] == ["jaxobs"]
        for each in seen.links
    ):  # fmt: skip
        yield "no dropdown"


def d26(seen: Seen) -> Iterator[str]:
    """A panel with lines has a legend."""
    for panel in seen.panels:
        if panel.kind == "timeseries" and not panel.options["legend"]["showLegend"]:
            yield f"panel {panel.title!r}"


def d29(seen: Seen) -> Iterator[str]:
    """A divisor is a number, or has been asked to be above 0."""
    for panel, query in _queries(seen):
        for divisor in _divisors(promql.parse(seen.filled(query.expr))):
            if type(divisor).__name__ != "NumberLiteral" and not re.search(r">\s+\d+[\s)]*$", divisor.prettify()):
                yield f"panel {panel.title!r} divides by {divisor.prettify()}"


def _divisors(node: Any) -> Iterator[Any]:
    if type(node).__name__ == "BinaryExpr":
        if str(node.op) in ("/", "%"):
            grouped = node.modifier is not None and str(node.modifier.card).endswith("x")
            assert not grouped
            yield node.rhs
        yield from _divisors(node.lhs)
        yield from _divisors(node.rhs)
    elif type(node).__name__ == "Call":
        for each in node.args:
            yield from _divisors(each)
    elif hasattr(node, "expr"):
        yield from _divisors(node.expr)


def d33(seen: Seen) -> Iterator[str]:
    """The data source is the variable, in queries, annotations and variables."""
    found = {query.source for _, query in _queries(seen)} | {source for _, source in seen.annotations}
    found |= {each.source for each in seen.variables if each.kind == "query"}
    if found != {"$datasource"}:
        yield str(found)


def _queries(seen: Seen) -> Iterator[tuple[Shown, Query]]:
    for panel in seen.panels:
        for query in panel.queries:
            yield panel, query


CHECKS: tuple[Callable[[Seen], Iterator[str]], ...] = (
    d01, d02_d03, d04, d05, d06, d07_d09_d18, d08_d19, d10_d12, d13, d14_d15, d16_d20, d17, d21, d22, d23, d24, d25,
    d26, d29, d33,
)  # fmt: skip
