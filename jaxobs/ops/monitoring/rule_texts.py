"""Reads the files next to a rule: its runbook in Markdown, `<rule>.md`, and its promtool cases, `<rule>.tests.yaml`.

A runbook has the sections of the page that is generated from it, without what the rule itself says. A file of cases
has `series`, short names for the series of its cases; `labels`, those of what fires, unless a case has others;
`interval`, the time between samples, if it is not `1m`; and `cases`, with the fields of `Case`. All values are texts.
"""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from jaxobs.base.errors import MissingExtraError
from jaxobs.ops.monitoring.objective_types import Guide
from jaxobs.ops.monitoring.rule_types import Case, Fired, Runbook, Step

_GUIDE = ("Impact", "Diagnosis", "Mitigation", "What this is not")
_RUNBOOK = ("Meaning", *_GUIDE, "Escalation", "How to verify")

_HEADING = re.compile(r"(?m)^#{2,3} (.+)\n")
_ITEM = re.compile(r"(?m)^(?:\d+\.|-) ")
_BLOCK = re.compile(r"(?ms)^```(\w+)\n(.*?)\n```$")
_CELLS = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class Beside:
    """The texts next to a module, by its `__name__`; each is read when it is asked for."""

    module: str

    def runbook(self) -> Runbook:
        """Returns the runbook of the rule that the module declares.

        Raises:
          ValueError: a section is missing or unknown; with the file's name.
        """
        return _runbook(self.module)

    def cases(self) -> tuple[Case, ...]:
        """Returns the promtool cases of the rule that the module declares.

        Raises:
          MissingExtraError: PyYAML is not installed.
        """
        return _cases(self.module)


@functools.cache
def _runbook(module: str) -> Runbook:
    found = _sections(module, _RUNBOOK, optional=("On GPUs", "On TPUs"))
    return Runbook(
        meaning=_prose(found["Meaning"]),
        impact=_prose(found["Impact"]),
        diagnosis=_steps(found["Diagnosis"]),
        mitigation=_items(found["Mitigation"]),
        look_alikes=_look_alikes(found["What this is not"]),
        evidence=_items(found["Escalation"]),
        verify=_prose(found["How to verify"]),
        gpu=_prose(found.get("On GPUs", "")),
        tpu=_prose(found.get("On TPUs", "")),
    )


def guide(module: str, **gaps: str) -> Guide:
    """Returns the guide next to the module of an objective: the sections of its runbook that are about it alone.

    Args:
      gaps: text instead of each `<name>`.

    Raises:
      ValueError: a section is missing or unknown; with the file's name.
    """
    found = _sections(module, _GUIDE, optional=("Escalation",))
    for name, value in gaps.items():
        found = {heading: text.replace(f"<{name}>", value) for heading, text in found.items()}
    return Guide(
        impact=_prose(found["Impact"]),
        diagnosis=_steps(found["Diagnosis"]),
        mitigation=_items(found["Mitigation"]),
        look_alikes=_look_alikes(found["What this is not"]),
        evidence=_items(found.get("Escalation", "")),
    )


@functools.cache
def _cases(module: str) -> tuple[Case, ...]:
    try:
        import yaml
    except ImportError as error:
        raise MissingExtraError("jaxobs generate alerts", "pyyaml", "grafana") from error
    found = yaml.load(_read(module, ".tests.yaml"), Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    return tuple(_case(case, found) for case in found["cases"])


def _case(case: Mapping[str, Any], common: Mapping[str, Any]) -> Case:
    fires = [
        Fired(labels=fired.get("labels", common.get("labels")), values=tuple(fired.get("values", ())),
              told_at=fired.get("told_at", ""), culprit=fired.get("culprit", ""))
        for fired in case.get("fires", ())
    ]  # fmt: skip
    return Case(
        kind=case["kind"],
        series={common["series"][name]: values for name, values in case["series"].items()},
        at=case["at"],
        fires=tuple(fires),
        interval=common.get("interval", "1m"),
    )


def _sections(module: str, required: tuple[str, ...], *, optional: tuple[str, ...]) -> dict[str, str]:
    parts = _HEADING.split(_read(module, ".md"))
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    if missing := [name for name in required if name not in found]:
        raise ValueError(f"{module}.md lacks the sections: {', '.join(missing)}.")
    if unknown := found.keys() - {*required, *optional}:
        raise ValueError(f"{module}.md has unknown sections: {', '.join(sorted(unknown))}.")
    return found


def _prose(text: str) -> str:
    return " ".join(text.split())


def _items(section: str) -> tuple[str, ...]:
    return tuple(_prose(text) for text in _ITEM.split(section)[1:])


def _steps(section: str) -> tuple[Step, ...]:
    return tuple(_step(text) for text in _ITEM.split(section)[1:])


def _step(text: str) -> Step:
    blocks = dict(_BLOCK.findall(text))
    rest = _BLOCK.sub("", text)
    return Step(
        do=_prose(rest.partition("\n|")[0]),
        command=blocks.get("sh", ""),
        query=blocks.get("promql", ""),
        answers=tuple((seen, means) for seen, means in _rows(rest)),
    )


def _look_alikes(section: str) -> tuple[tuple[str, str, str], ...]:
    return tuple((what, how, where) for what, how, where in _rows(section))


def _rows(text: str) -> list[list[str]]:
    rows = [line for line in text.splitlines() if line.startswith("|")][2:]
    return [[cell.strip().replace("\\|", "|") for cell in _CELLS.split(row)[1:-1]] for row in rows]


def _read(module: str, ending: str) -> str:
    package, _, name = module.rpartition(".")
    return (resources.files(package) / f"{name}{ending}").read_text(encoding="utf-8")
