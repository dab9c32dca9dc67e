"""The recording rules: each group is a file of this folder, TOML where it is plain data, else a module with `GROUP`.

A file has the fields of `rule_types.Group` and of its `Recording`s, and `[parts]`: texts for `${name}` in those behind
it, as the constants of `promql` are.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from string import Template
from typing import Any, Protocol

from jaxobs.base import discovery
from jaxobs.ops.monitoring import promql
from jaxobs.ops.monitoring.rule_types import Group, Recording


class RecordingModule(discovery.Module, Protocol):
    """Declares one group of recording rules."""

    GROUP: Group


def groups() -> list[Group]:
    """Returns all groups of recording rules, by name."""
    files = [each for each in resources.files(__package__).iterdir() if each.name.endswith(".toml")]
    found = [_group(**tomllib.loads(each.read_text(encoding="utf-8"))) for each in files]
    found += [module.GROUP for module in discovery.modules(RecordingModule)]
    return sorted(found, key=lambda group: group.name)


def _group(rules: list[dict[str, Any]], parts: dict[str, str] | None = None, **fields: str) -> Group:
    known = {name: value for name, value in vars(promql).items() if isinstance(value, str)}
    for name, text in (parts or {}).items():
        known[name] = Template(text).safe_substitute(known)
    for rule in rules:
        rule |= {field: Template(rule[field]).safe_substitute(known) for field in ("name", "expr")}
    return Group(**fields, rules=tuple(Recording(**rule) for rule in rules))
