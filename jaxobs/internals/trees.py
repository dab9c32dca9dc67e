"""Structures of pytrees, with other metadata in their nodes.

`PyTreeDef.__getstate__` (jaxlib/pytree.cc) lists nodes, children first: kind, arity, metadata, and more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def with_metadata(tree: Any, replaced: Callable[[Any], Any]) -> Any:
    """Returns the structure with each node's metadata replaced, or itself if all of it stays the same."""
    registry, nodes = tree.__getstate__()
    data = [each[2] if each[2] is None else replaced(each[2]) for each in nodes]
    if all(new is each[2] for new, each in zip(data, nodes, strict=True)):
        return tree
    kind: Any = type(tree)
    found = kind.__new__(kind)
    found.__setstate__((registry, [(*each[:2], new, *each[3:]) for new, each in zip(data, nodes, strict=True)]))
    return found
