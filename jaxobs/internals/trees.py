"""Structures of pytrees, with other metadata in their nodes.

`PyTreeDef.__getstate__` (jaxlib/pytree.cc) lists nodes, children first: kind, arity, metadata, and more.
"""

from collections.abc import Callable
from itertools import chain
from typing import Any


def with_metadata(tree: Any, replaced: Callable[[Any], Any], plain: frozenset[type] = frozenset()) -> Any:
    """Returns the structure with each node's metadata replaced, or itself if all of it stays the same.

    Args:
      plain: types of metadata, and of a dictionary's keys, that stay: a structure that has no others costs little.
    """
    registry, nodes = tree.__getstate__()
    items = chain.from_iterable([each[2] if type(each[2]) is list else [each[2]] for each in nodes])
    if plain.issuperset(map(type, items)):
        return tree
    data = [each[2] if each[2] is None else replaced(each[2]) for each in nodes]
    if all(new is each[2] for new, each in zip(data, nodes, strict=True)):
        return tree
    kind: Any = type(tree)
    found = kind.__new__(kind)
    found.__setstate__((registry, [(*each[:2], new, *each[3:]) for new, each in zip(data, nodes, strict=True)]))
    return found
