"""The flame graph: a frame for each function, scope and operation, as wide as its part of the time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxobs.facts.profiles import OperationTime
from jaxobs.profiles import stacks
from jaxobs.profiles.stacks import Node

LEAST = 0.0008
"""Of all time: what has less isn't drawn."""
MOST_FRAMES = 4_000
MOST_DEEP = 40


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame; `start` and `width` are parts of all time."""

    name: str
    start: float
    width: float
    deep: int
    seconds: float
    category: str | None


def frames(rows: Sequence[OperationTime]) -> list[Frame]:
    """The frames from the root up, the widest first among those that lie on the same one."""
    root = stacks.tree(rows)
    if not root.seconds:
        return []
    found = []
    for frame in _frames(root, 0.0, 0, root.seconds):
        found.append(frame)
        if len(found) >= MOST_FRAMES:
            break
    return found


def _frames(node: Node, start: float, deep: int, whole: float) -> Iterator[Frame]:
    yield Frame(node.name, start, node.seconds / whole, deep, node.seconds, node.category)
    if deep >= MOST_DEEP:
        return
    for inner in sorted(node.inside.values(), key=lambda each: (-each.seconds, each.name)):
        if inner.seconds / whole >= LEAST:
            yield from _frames(inner, start, deep + 1, whole)
        start += inner.seconds / whole
