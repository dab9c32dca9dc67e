"""Diagnoses: each fault is a table in the TOML file of its subject; what needs code is in the module with its name.

A table has the name of the fault and the fields of `Knowledge`. A sign names its kind by its first field, such as
`line = "..."`, `event = "..."` or `silence = true`, and has the other fields of that class of `knowledge`.

A table with `functions = true` has functions, too: those of its name in `FUNCTIONS` of the module with the file's name.
`${name}` in a table is a text of the file's `[parts]`, or of `PARTS` of that module.
"""

import functools
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import resources
from typing import Any, Protocol

from jaxobs.base import discovery
from jaxobs.ops.diagnosis import kinds, knowledge
from jaxobs.ops.diagnosis.knowledge import AnySign, Functions, Knowledge

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
_PART = re.compile(r"\$\{(\w+)\}")


class SubjectModule(discovery.Module, Protocol):
    """Has the functions of the faults of one file, by their names."""

    FUNCTIONS: Mapping[str, Functions]


class SharingModule(SubjectModule, Protocol):
    """Has texts besides that its functions and the tables of the file share, by their names."""

    PARTS: Mapping[str, str]


@functools.cache
def known() -> Mapping[str, Knowledge]:
    """Returns all diagnoses by name, in the order of their names.

    Raises:
      ValueError: a file has a field that the class lacks, two files name one fault, or a table and the functions of a
        module do not fit; the message says which.
    """
    functions = {
        (discovery.short_name(each), fault): own
        for each in discovery.modules(SubjectModule)
        for fault, own in each.FUNCTIONS.items()
    }
    found: dict[str, Knowledge] = {}
    for subject, name, table, texts in _tables():
        try:
            if name in found:
                raise ValueError("it is declared twice")
            own = functions.pop((subject, name), None) if table.pop("functions", False) else Functions()
            if own is None:
                raise ValueError(f"`functions = true`, but `FUNCTIONS` of {subject}.py has none for it")
            found[name] = _knowledge(_filled(table, texts), own)
        except (TypeError, ValueError) as error:
            raise ValueError(f"`{name}` in {subject}.toml: {error}") from error
    for subject, name in functions:
        raise ValueError(f"`{name}` in `FUNCTIONS` of {subject}.py: no table of {subject}.toml says `functions = true`")
    for name, ways in kinds.kinds().items():
        signs = tuple(each.raised() for each in ways if each.sign)
        found[name] = replace(found[name], signs=(*found[name].signs, *signs))
    return dict(sorted(found.items()))


def _tables() -> Iterator[tuple[str, str, dict[str, Any], Mapping[str, str]]]:
    """Yields each table with its subject and its name before it, and the texts that it may name behind it."""
    shared = {discovery.short_name(each): each.PARTS for each in discovery.modules(SharingModule)}
    for file in resources.files(__package__).iterdir():
        subject, _, ending = file.name.partition(".")
        if ending == "toml":
            tables = tomllib.loads(file.read_text(encoding="utf-8"))
            texts = {**shared.get(subject, {}), **tables.pop("parts", {})}
            for name, table in tables.items():
                yield subject, name, table, texts


def _filled(value: Any, texts: Mapping[str, str]) -> Any:
    """Returns a value of a table with its texts in it, and tuples for its lists."""
    if isinstance(value, dict):
        return {name: _filled(each, texts) for name, each in value.items()}
    if isinstance(value, list):
        return tuple(_filled(each, texts) for each in value)
    if not isinstance(value, str):
        return value
    if unknown := {*_PART.findall(value)} - {*texts}:
        raise ValueError(f"there is no part `{min(unknown)}`")
    return _PART.sub(lambda name: texts[name[1]], value)


def _knowledge(table: dict[str, Any], functions: Functions) -> Knowledge:
    signs = {name: tuple(map(_sign, table.pop(name, ()))) for name in ("signs", "refuted_by")}
    return Knowledge(**table, signs=signs["signs"], refuted_by=signs["refuted_by"], **functions)


def _sign(table: dict[str, Any]) -> AnySign:
    key, value = next(iter(table.items()))
    if key not in _KINDS:
        raise ValueError(f"a sign begins with `{key}`, but must begin with one of: {', '.join(_KINDS)}")
    kind, field = _KINDS[key]
    del table[key]
    return kind(**({field: value} if field else {}), **table)
