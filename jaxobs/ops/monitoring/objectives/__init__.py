"""The built-in objectives: each is a file of this folder, with its part of the runbook in Markdown next to it.

A file has the fields of `objective_types.Objective`, and texts for `${name}` in `bad` and `total`: in `[rises]`
counters, which stand for how much they rose, and in `[parts]` expressions. The constants of `promql` are known, too.
`culprit` names a label and one of the counters.
"""

import tomllib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from importlib import resources
from string import Template
from typing import Any

from jaxobs.ops.monitoring import promql
from jaxobs.ops.monitoring.objective_types import Example, Objective
from jaxobs.ops.monitoring.rule_texts import guide


def objectives() -> list[Objective]:
    """Returns all built-in objectives, by name."""
    files = [each for each in resources.files(__package__).iterdir() if each.name.endswith(".toml")]
    found = [_objective(each.name, **tomllib.loads(each.read_text(encoding="utf-8"))) for each in files]
    return sorted(found, key=lambda each: each.name)


def _objective(
    file: str, *, bad: str, total: str, target: str, least: str, example: dict[str, Any],
    rises: Mapping[str, str] | None = None, parts: Mapping[str, str] | None = None, culprit: Sequence[str] = (),
    inhibits: Sequence[str] = (), **fields: Any,
) -> Objective:  # fmt: skip
    counters = promql.parts(rises or {})
    known = {name: promql.increase(counters[name]) for name in rises or {}}
    if culprit:
        fields["culprit"] = (culprit[0], counters[culprit[1]])
    known = promql.parts(parts or {}, known)
    return Objective(
        bad=Template(bad).safe_substitute(known), total=Template(total).safe_substitute(known),
        target=Decimal(target), least=Decimal(least), guide=guide(f"{__package__}.{file.removesuffix('.toml')}"),
        example=Example(**{**example, "share": Decimal(example["share"])}), inhibits=tuple(inhibits), **fields,
    )  # fmt: skip
