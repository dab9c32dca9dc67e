"""The recording rules: each group is a TOML file of this folder.

A file has the fields of `rule_types.Group` and of its `Recording`s, and `[parts]`: texts for `${name}` in those behind
it, as the constants of `promql` are.
"""

import tomllib
from importlib import resources
from string import Template
from typing import Any

from jaxobs.ops.monitoring import promql
from jaxobs.ops.monitoring.rule_types import Group, Recording


def groups() -> list[Group]:
    """Returns all groups of recording rules, by name."""
    files = [each for each in resources.files(__package__).iterdir() if each.name.endswith(".toml")]
    return sorted(
        (_group(**tomllib.loads(each.read_text(encoding="utf-8"))) for each in files), key=lambda group: group.name
    )


def _group(rules: list[dict[str, Any]], parts: dict[str, str] | None = None, **fields: str) -> Group:
    known = promql.parts(parts or {})
    for rule in rules:
        rule |= {field: Template(rule[field]).safe_substitute(known) for field in ("name", "expr", "why")}
    return Group(**fields, rules=tuple(Recording(**rule) for rule in rules))
