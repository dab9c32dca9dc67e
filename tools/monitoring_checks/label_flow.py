"""Which labels an expression of PromQL leaves: followed from the catalogue through operators and functions.

After the model of pint's `promql/impossible` check, which lets `le` through `histogram_quantile`; here it ends there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client import Counter

from jaxobs.exporters import pushgateway
from jaxobs.metrics.catalogue import METRICS
from jaxobs.metrics.metric import Metric
from jaxobs.ops.agent.own_metrics import OwnMetrics
from jaxobs.ops.monitoring import promql

TARGET = frozenset({*promql.GROUPING, "instance"})
"""Labels that Prometheus adds to each series that it scrapes."""

SCRAPED = (
    "up",
    "scrape_duration_seconds",
    "scrape_samples_scraped",
    "scrape_samples_post_metric_relabeling",
    "scrape_series_added",
)
"""Series that Prometheus itself writes for each target."""


_OF_VLLM = frozenset({"model_name", "engine"})
OTHER_HISTOGRAMS = tuple(
    f"vllm:{each}_seconds"
    for each in (
        "time_to_first_token", "request_time_per_output_token", "e2e_request_latency", "inter_token_latency",
        "request_queue_time",
    )
)  # fmt: skip
OTHER_EXPORTERS: Mapping[str, frozenset[str]] = {
    "kube_node_spec_taint": frozenset({"node", "key", "effect"}),
    "kube_node_status_condition": frozenset({"node", "condition", "status"}),
    "kube_node_labels": frozenset({"node", "label_cloud_google_com_active_node_maintenance"}),
    "kube_pod_container_status_restarts_total": frozenset({"pod", "container"}),
    "kube_pod_container_status_last_terminated_reason": frozenset({"pod", "container", "reason"}),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": frozenset({"UUID", "gpu", "Hostname"}),
    "node_memory_MemAvailable_bytes": frozenset(),
    "node_memory_MemTotal_bytes": frozenset(),
    **dict.fromkeys(("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"), _OF_VLLM),
    **dict.fromkeys(("vllm:prompt_tokens_total", "vllm:generation_tokens_total", *OTHER_HISTOGRAMS), _OF_VLLM),
    **dict.fromkeys((f"{each}_bucket" for each in OTHER_HISTOGRAMS), _OF_VLLM | {"le"}),
    "vllm:request_success_total": _OF_VLLM | {"finished_reason"},
}
"""Series of other exporters that a rule or a dashboard asks for, with the labels that they have."""
OTHER_COUNTERS = tuple(each for each in OTHER_EXPORTERS if each.endswith(("_total", "_bucket")))


class LabelError(ValueError):
    """An expression asks for a label, or a series, that cannot be there."""


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of a result: those that each series has, and those that some may have."""

    certain: frozenset[str]
    possible: frozenset[str]

    def without(self, names: Iterable[str]) -> Labels:
        """Less these."""
        return Labels(self.certain - set(names), self.possible - set(names))

    def only(self, names: Iterable[str]) -> Labels:
        """Returns those of these names alone."""
        return Labels(self.certain & set(names), self.possible & set(names))

    def plus(self, names: Iterable[str]) -> Labels:
        """Returns these labels added."""
        return Labels(self.certain | set(names), self.possible | set(names))


NONE = Labels(frozenset(), frozenset())

Known = Mapping[str, Labels]
"""Labels by the name of a series."""

_SAME = ("topk", "bottomk", "limitk", "limit_ratio")
_SETS = ("and", "or", "unless")
_DATES = ("minute", "hour", "day_of_week", "day_of_month", "day_of_year", "days_in_month", "month", "year")
_EQUAL, _LIKE = "MatchOp.Equal", "MatchOp.Re"


def agent_metrics() -> dict[str, frozenset[str]]:
    """Counters of the agent with their labels."""
    counters = (each for each in vars(OwnMetrics(lambda: 0.0)).values() if isinstance(each, Counter))
    return {f"{each._name}_total": frozenset(each._labelnames) for each in counters}


def series(metrics: Iterable[Metric] = METRICS) -> dict[str, Labels]:
    """Every series that a Prometheus that scrapes jaxobs has, with its labels; `ALERTS` may have any."""
    found: dict[str, Labels] = {}
    for metric in metrics:
        labels = TARGET | set(metric.labels)
        names = {"histogram": ("", "_sum", "_count"), "summary": ("_sum", "_count")}.get(metric.kind, ("",))
        for suffix in names:
            found[metric.name + suffix] = Labels(labels, labels)
        if metric.kind == "histogram":
            found[f"{metric.name}_bucket"] = Labels(labels | {"le"}, labels | {"le"})
    every = frozenset().union(*(labels.possible for labels in found.values()))
    alert = frozenset({"alertname", "alertstate", "severity"})
    found["ALERTS"] = Labels(alert, every | alert | {"slo", "short", "long", "exhaustion"})
    found |= {name: Labels(TARGET | {*labels}, TARGET | {*labels}) for name, (_, labels) in pushgateway.METRICS.items()}
    place = TARGET | {"pod", "node"}
    ends = {"up": Labels(TARGET, TARGET | {"node", "pod_phase", "jax_end"})}
    ends["jax_process_info"] = Labels(found["jax_process_info"].certain, found["jax_process_info"].possible | place)
    ends |= {name: Labels(TARGET | of, place | of | {"value"}) for name, of in OTHER_EXPORTERS.items()}
    for name, of in agent_metrics().items():
        ends[name] = Labels(TARGET | of, TARGET | of)
    return found | {name: Labels(TARGET, TARGET) for name in SCRAPED} | ends


def recorded(rules: Iterable[tuple[str, str, Mapping[str, str]]]) -> dict[str, Labels]:
    """The labels of recorded series: of name, filled expression and static labels, in the order of evaluation.

    Raises:
      LabelError: an expression asks for what cannot be there.
    """
    known = series()
    found: dict[str, Labels] = {}
    for name, expr, labels in rules:
        kept = flow(expr, known | found).plus(labels)
        before = found.get(name, kept)
        found[name] = Labels(before.certain & kept.certain, before.possible | kept.possible)
    return found


def labels_of(expr: str, known: Known | None = None) -> frozenset[str]:
    """The labels that the series of an expression may have, without the name.

    Args:
      expr: PromQL without gaps and without variables outside quotes.
      known: labels by series; by default those of the catalogue. Add those that are recorded.

    Raises:
      LabelError: it asks for a label or a series that cannot be there, or joins what can never meet.
      ValueError: it is no PromQL.
    """
    return flow(expr, known).possible


def flow(expr: str, known: Known | None = None) -> Labels:
    """As `labels_of`, and which of them each series has."""
    return _Flow(series() if known is None else known, expr).of(promql.parse(expr)) or NONE


class _Flow:
    """A walk over an expression; None stands for a number."""

    def __init__(self, known: Known, expr: str) -> None:
        self._known = known
        self._expr = expr
        self._of: dict[str, Callable[[Any], Labels | None]] = {
            "NumberLiteral": lambda node: None,
            "StringLiteral": lambda node: None,
            "ParenExpr": lambda node: self.of(node.expr),
            "UnaryExpr": lambda node: self.of(node.expr),
            "SubqueryExpr": lambda node: self.of(node.expr),
            "MatrixSelector": lambda node: self._selector(node.vector_selector),
            "VectorSelector": self._selector,
            "AggregateExpr": self._aggregate,
            "Call": self._call,
            "BinaryExpr": self._binary,
        }

    def of(self, node: Any) -> Labels | None:
        """The labels that a node leaves."""
        return self._of[type(node).__name__](node)

    def _need(self, names: Iterable[str], there: Labels, what: str) -> None:
        missing = sorted(set(names) - there.possible)
        if missing:
            raise LabelError(
                f"{what} asks for `{', '.join(missing)}`, but there is only "
                f"`{', '.join(sorted(there.possible)) or 'no label'}` in: {self._expr}"
            )

    def _selector(self, node: Any) -> Labels:
        if node.name not in self._known:
            raise LabelError(f"Nothing exports or records `{node.name}`, which is asked for in: {self._expr}")
        there = self._known[node.name]
        matchers = node.matchers.matchers
        self._need((each.name for each in matchers), there, f"A matcher of `{node.name}`")
        empty = {each.name for each in matchers if str(each.op) == _EQUAL and not each.value}
        given = {each.name for each in matchers if str(each.op) in (_EQUAL, _LIKE) and each.value not in ("", ".*")}
        return Labels(there.certain | given, there.possible).without(empty)

    def _aggregate(self, node: Any) -> Labels:
        operator, inner = str(node.op), self.of(node.expr) or NONE
        if operator in _SAME:
            return inner
        if node.modifier is None:
            kept = NONE
        elif str(node.modifier.type).endswith("By"):
            self._need(node.modifier.labels, inner, f"`{operator} by`")
            kept = inner.only(node.modifier.labels)
        else:
            kept = inner.without(node.modifier.labels)
        return kept.plus([node.param.val]) if operator == "count_values" else kept

    def _call(self, node: Any) -> Labels | None:
        name, given = node.func.name, [self.of(each) for each in node.args]
        if name in ("absent", "absent_over_time"):
            return self._absent(node.args[0])
        if name in ("scalar", "time", "pi"):
            return None
        if name == "vector" or (name in _DATES and not given):
            return NONE
        there = next((each for each in given if each is not None), NONE)
        if name == "histogram_quantile":
            if not self._native(node):
                self._need(["le"], there, "`histogram_quantile`")
            return there.without(["le"])
        if name in ("label_replace", "label_join"):
            texts = [each.val for each in node.args[1:]]
            self._need(texts[2:] if name == "label_join" else filter(None, [texts[2]]), there, f"`{name}`")
            return there.plus([texts[0]])
        return there

    def _native(self, node: Any) -> bool:
        names = {each.name or "" for each in promql.selectors(node.prettify())}
        return all(f"{name}_bucket" in self._known for name in names)

    def _absent(self, node: Any) -> Labels:
        selector = getattr(node, "vector_selector", node)
        matchers = getattr(getattr(selector, "matchers", None), "matchers", [])
        kept = [each.name for each in matchers if str(each.op) == _EQUAL and each.value]
        return NONE.plus(kept)

    def _binary(self, node: Any) -> Labels | None:
        left, right, operator = self.of(node.lhs), self.of(node.rhs), str(node.op)
        if left is None or right is None:
            return left or right
        matching = None if node.modifier is None else node.modifier.matching
        names = [] if matching is None else matching.labels
        on = matching is not None and str(matching.type).endswith("Include")
        if operator == "or":
            return Labels(left.certain & right.certain, left.possible | right.possible)
        self._meet(left, right, names, on, operator)
        if operator in _SETS:
            return left
        card = str(node.modifier.card) if node.modifier is not None else ""
        if card.endswith(("ManyToOne", "OneToMany")):
            many, one = (left, right) if card.endswith("ManyToOne") else (right, left)
            more = _names(node.modifier.group_labels)
            self._need(more, one, "`group_left` or `group_right`")
            doubled = sorted(set(more) & many.certain - set(names))
            if doubled:
                raise LabelError(f"`{', '.join(doubled)}` is joined to series that have it already in: {self._expr}")
            return many.plus(more)
        if on:
            return left.only(names)
        return Labels(left.certain, left.possible & right.possible).without(names)

    def _meet(self, left: Labels, right: Labels, names: list[str], on: bool, operator: str) -> None:
        if on:
            self._need(names, left, f"`on` at the left of `{operator}`")
            self._need(names, right, f"`on` at the right of `{operator}`")
            return
        alone = sorted(((left.certain - right.possible) | (right.certain - left.possible)) - set(names))
        if alone:
            raise LabelError(
                f"Only one side of `{operator}` has `{', '.join(alone)}`, so nothing meets in: {self._expr}"
            )


def _names(labels: Any) -> list[str]:
    return [] if labels is None else list(getattr(labels, "labels", labels))
