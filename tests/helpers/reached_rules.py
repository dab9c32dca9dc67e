"""Rules that can have a result where only some series exist: promtool evaluates all others in vain in every minute."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from jaxobs.ops.monitoring import promql

_OF_NOTHING = ("absent", "absent_over_time", "vector", "time", "scalar")
"""Functions with a result where there is no series."""


class Reached:
    """Series that exist and rules whose expressions can have a result, found by following what rules record."""

    def __init__(self, groups: Iterable[Mapping[str, Any]], series: Iterable[str]) -> None:
        self._known: dict[str, list[tuple[Mapping[str, str], bool]]] = {}
        for text in series:
            name, _, labels = text.partition("{")
            self._known.setdefault(name, []).append((dict(re.findall(r'(\w+)="([^"]*)"', labels)), True))
        left = [(promql.parse(rule["expr"]), rule) for group in groups for rule in group["rules"]]
        self.rules: list[Mapping[str, Any]] = []
        while found := [rule for parsed, rule in left if self._can_be(parsed)]:
            left = [(parsed, rule) for parsed, rule in left if rule not in found]
            for rule in found:
                self._known.setdefault(rule.get("record", "ALERTS"), []).append((rule.get("labels", {}), False))
            self.rules += found

    def _can_be(self, node: Any) -> bool:
        if (kind := type(node).__name__) == "VectorSelector":
            matchers = node.matchers.matchers
            name = node.name or next(each.value for each in matchers if each.name == "__name__")
            return any(
                all(_matches(each, labels, whole) for each in matchers) for labels, whole in self._known.get(name, ())
            )
        if kind == "MatrixSelector":
            return self._can_be(node.vector_selector)
        if kind == "Call":
            return node.func.name in _OF_NOTHING or all(map(self._can_be, node.args))
        if kind == "BinaryExpr":
            left, right = self._can_be(node.lhs), self._can_be(node.rhs)
            return {"or": left or right, "unless": left}.get(str(node.op), left and right)
        return self._can_be(node.expr) if hasattr(node, "expr") else kind in ("NumberLiteral", "StringLiteral")


def _matches(matcher: Any, labels: Mapping[str, str], whole: bool) -> bool:
    """Returns whether a series with these labels, and others if they are not all, can match."""
    if matcher.name == "__name__" or (matcher.name not in labels and not whole):
        return True
    value, operator = labels.get(matcher.name, ""), str(matcher.op).rpartition(".")[2]
    same = value == matcher.value if operator in ("Equal", "NotEqual") else bool(re.fullmatch(matcher.value, value))
    return same != operator.startswith("Not")


def reached(groups: Iterable[dict[str, Any]], series: Iterable[str]) -> list[dict[str, Any]]:
    """The groups with only those rules that can have a result from these series, in promtool's notation."""
    groups = list(groups)
    rules = Reached(groups, series).rules
    kept = [{**group, "rules": [rule for rule in group["rules"] if rule in rules]} for group in groups]
    return [group for group in kept if group["rules"]]
