"""The operations of a profile as stacks: function, scope by scope, operation. What flame graphs and pprof draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from jaxobs.facts.profiles import OperationTime

NO_FUNCTION = "(no program)"


def parts(scope: str) -> list[str]:
    """Returns the parts of a scope: it is divided at slashes, but not at those inside brackets."""
    found, deep, part = [], 0, ""
    for letter in scope:
        deep = max(0, deep + (letter in "([{") - (letter in ")]}"))
        if letter == "/" and deep == 0:
            found.append(part)
            part = ""
        else:
            part += letter
    return [each for each in (*found, part) if each]


def frames(row: OperationTime) -> tuple[str, ...]:
    """From the function to the operation."""
    return (row.function or NO_FUNCTION, *_inside(row), row.operation)


def scope_within(row: OperationTime) -> str | None:
    """Returns the scope of an operation within its function."""
    return "/".join(_inside(row)) or None


def _inside(row: OperationTime) -> list[str]:
    found = parts(row.scope) if row.scope is not None else []
    whole = found and row.function is not None and found[0].endswith(f"({row.function})")
    return found[1:] if whole else found


@dataclass(slots=True)
class Node:
    """A frame of a flame graph."""

    name: str
    seconds: float = 0.0
    """With all that is inside."""
    category: str | None = None
    """The category of an operation."""
    inside: dict[str, Node] = field(default_factory=dict)


def tree(rows: Sequence[OperationTime]) -> Node:
    """Returns all stacks together, under one root."""
    root = Node("all")
    for row in rows:
        at = root
        at.seconds += row.device_seconds
        for name in frames(row):
            at = at.inside.setdefault(name, Node(name))
            at.seconds += row.device_seconds
        at.category = row.category
    return root
