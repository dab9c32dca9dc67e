"""How many series a query returns at most, by how many values each label has at a size."""

from __future__ import annotations

from math import prod
from typing import Any

from jaxobs.metrics.catalogue import METRICS
from jaxobs.ops.monitoring import promql
from tools.monitoring_checks import label_flow

DEVICES = 1024
PROCESSES = 128
VALUES = {
    "cluster": 1, "namespace": 1,
    "job": 1, "instance": PROCESSES, "device": 8, "function": 50, "error": 3, "route": 10, "loop": 2, "input": 2,
    "engine": 1, "name": 3,
    "site": 10, "xid": 3, "link": 6, "clock": 2, "space": 2, "finding": 21, "where": 5, "le": 22, "alertname": 40,
    "severity": 3, "platform": 1, "process_index": 1, "pci_bus_id": 1, "jax": 3, "jaxlib": 1, "jaxobs": 1, "python": 1,
    "plugin": 1, "driver": 1, "runtime": 1, "process_count": 1,
}  # fmt: skip
"""Numbers of values of labels without a closed set. Devices are numbered within their process."""
CLOSED = {label: len(values) for metric in METRICS for label, values in metric.values}

MOST = {
    "timeseries": 100,
    "stat": 20,
    "bargauge": 100,
    "state-timeline": 100,
    "table": DEVICES + 100,
    "heatmap": DEVICES + 100,
}
"""Series of one panel, by kind: lines that a browser draws at once; rows of a table scroll."""


def series(expr: str, known: dict[str, label_flow.Labels]) -> int:
    """Returns how many series an expression without gaps has."""
    return _count(promql.parse(expr), known)


def _count(node: Any, known: dict[str, label_flow.Labels]) -> int:
    kind = type(node).__name__
    if kind in ("NumberLiteral", "StringLiteral"):
        return 1
    if kind == "VectorSelector":
        return _selector(node, known)
    if kind == "MatrixSelector":
        return _selector(node.vector_selector, known)
    if kind == "Call":
        return max(_count(each, known) for each in node.args) if node.args else 1
    if kind == "AggregateExpr":
        return _aggregate(node, known)
    if kind == "BinaryExpr":
        return _binary(node, known)
    return _count(node.expr, known)


def _selector(node: Any, known: dict[str, label_flow.Labels]) -> int:
    labels = {label: _values(label) for label in known[node.name].possible}
    if node.name == "jax_device_info":
        labels["kind"] = 1
    for matcher in node.matchers.matchers:
        if str(matcher.op) == "MatchOp.Equal":
            labels[matcher.name] = 1
        elif str(matcher.op) == "MatchOp.Re" and "$" not in matcher.value and "." not in matcher.value:
            labels[matcher.name] = len(matcher.value.split("|"))
    return prod(labels.values())


def _values(label: str) -> int:
    return CLOSED.get(label) or VALUES.get(label, 4)


def _aggregate(node: Any, known: dict[str, label_flow.Labels]) -> int:
    inner = _count(node.expr, known)
    by = [] if node.modifier is None else node.modifier.labels
    if str(node.op) in ("topk", "bottomk"):
        return min(inner, int(node.param.val) * prod(_values(label) for label in by))
    kept = (
        by if node.modifier is None or str(node.modifier.type).endswith("By") else label_flow.labels_of(node.prettify())
    )
    return min(inner, prod(_values(label) for label in kept))


def _binary(node: Any, known: dict[str, label_flow.Labels]) -> int:
    left, right = _count(node.lhs, known), _count(node.rhs, known)
    numbers = [type(each).__name__ == "NumberLiteral" for each in (node.lhs, node.rhs)]
    if any(numbers):
        return right if numbers[0] else left
    if str(node.op) == "or":
        return left + right
    if str(node.op) in ("and", "unless"):
        return left
    card = str(node.modifier.card) if node.modifier is not None else ""
    if card.endswith("ManyToOne"):
        return left
    return right if card.endswith("OneToMany") else max(left, right)
