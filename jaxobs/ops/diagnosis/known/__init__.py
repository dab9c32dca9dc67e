"""Diagnoses: what is data is a table in a TOML file of its subject; a fault that needs code is a module with `KNOWN`.

A table has the name of the fault and the fields of `Knowledge`. A sign names its kind by its first field, such as
`line = "..."`, `event = "..."` or `silence = true`, and has the other fields of that class of `knowledge`.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import resources
from typing import Any, Protocol

from jaxobs.base import discovery
from jaxobs.ops.diagnosis import kinds, knowledge
from jaxobs.ops.diagnosis.knowledge import AnySign, Knowledge

_KINDS: Mapping[str, tuple[type[AnySign], str]] = {
    "line": (knowledge.Line, "pattern"),
    "event": (knowledge.Event, "name"),
    "metric": (knowledge.Metric, "name"),
    "alert": (knowledge.Alert, "name"),
    "any_alert": (knowledge.AnyAlert, ""),
    "raised": (knowledge.Raised, ""),
    "fatal": (knowledge.Fatal, ""),
    "silence": (knowledge.Silence, ""),
    "down": (knowledge.Down, ""),
}
"""Classes of signs by the key that names them in a file, and the field that the key's value is for."""


class KnowledgeModule(discovery.Module, Protocol):
    """Declares one diagnosis."""

    KNOWN: Knowledge


@functools.cache
def known() -> Mapping[str, Knowledge]:
    """Returns all diagnoses by name, in the order of their names.

    Raises:
      ValueError: a file has a field that the class lacks, or two files name one fault; the message says which.
    """
    found = {discovery.short_name(each): each.KNOWN for each in discovery.modules(KnowledgeModule)}
    for name, table, file in _tables():
        try:
            if name in found:
                raise ValueError("it is declared twice")
            found[name] = _knowledge(table)
        except (TypeError, ValueError) as error:
            raise ValueError(f"`{name}` in {file}: {error}") from error
    for name, ways in kinds.kinds().items():
        signs = tuple(each.raised() for each in ways if each.sign)
        found[name] = replace(found[name], signs=(*found[name].signs, *signs))
    return dict(sorted(found.items()))


def _tables() -> Iterator[tuple[str, dict[str, Any], str]]:
    for file in resources.files(__package__).iterdir():
        if file.name.endswith(".toml"):
            for name, table in tomllib.loads(file.read_text(encoding="utf-8")).items():
                yield name, table, file.name


def _knowledge(table: dict[str, Any]) -> Knowledge:
    signs: dict[str, Any] = {
        name: tuple(_sign(dict(each)) for each in table.pop(name, ())) for name in ("signs", "refuted_by")
    }
    return Knowledge(**{name: _frozen(value) for name, value in table.items()}, **signs)


def _sign(table: dict[str, Any]) -> AnySign:
    key, value = next(iter(table.items()))
    if key not in _KINDS:
        raise ValueError(f"a sign begins with `{key}`, but must begin with one of: {', '.join(_KINDS)}")
    kind, field = _KINDS[key]
    del table[key]
    first = {field: value} if field else {}
    return kind(**first, **{name: _frozen(entry) for name, entry in table.items()})


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
