"""Modules of Flax NNX as `nnx.jit` hands them to `jax.jit`: flat arrays, with a description of the graph next to them.

`NodeStates` (flax/nnx/extract.py) holds a `GraphDef` (flax/nnx/graphlib.py, flax/nnx/graph.py before 0.12) as metadata
and a list of arrays. The description lists nodes and attributes in the order of a walk from the root down, and so do
the arrays: their names are found by walking again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Path = tuple[Any, ...]


@dataclass(slots=True)
class Graph:
    """A module: attribute paths of its arrays in their order, its other attributes, and metadata of its variables."""

    leaves: list[Path] = field(default_factory=list)
    statics: dict[Path, Any] = field(default_factory=dict)
    kinds: dict[Path, Any] = field(default_factory=dict)
    """Type of each node and variable."""


def graph(tree: Any) -> Graph | None:
    """The module that a subtree of a signature is; None for anything else, and for what cannot be read."""
    node = tree.node_data()
    if node is None or node[0].__name__ != "NodeStates":
        return None
    children = tree.children()
    data = children[0].node_data() if children else None
    if data is None or not hasattr(data[1], "attributes") or not hasattr(data[1], "nodes"):
        return None
    found = Graph()
    try:
        _walk((), iter(data[1].nodes), iter(data[1].attributes), found)
    except (StopIteration, TypeError, ValueError, AttributeError, RuntimeError):
        return None
    return found if len(found.leaves) == tree.num_leaves else None


def _walk(path: Path, nodes: Iterator[Any], attributes: Iterator[Any], found: Graph) -> None:
    node = next(nodes)
    kind = type(node).__name__
    if kind == "NodeRef":  # met before, under another name
        return
    found.kinds[path] = node.type
    if kind == "VariableDef":
        found.leaves.append(path)
        metadata = getattr(node, "metadata", None)
        if isinstance(metadata, Mapping):
            found.statics.update({(*path, name): value for name, value in metadata.items()})
        return
    for _ in range(node.num_attributes):
        name, attribute = next(attributes)
        what = type(attribute).__name__
        if what == "NodeAttr":
            _walk((*path, name), nodes, attributes, found)
        elif what == "Static":
            if not str(name).startswith("_pytree__"):
                found.statics[(*path, name)] = attribute.value
        else:
            found.leaves.append((*path, name))


def keys(path: Path) -> tuple[Any, ...]:
    """An attribute's path as JAX's keys: `.layers[0].kernel`."""
    from jax import tree_util

    return tuple(
        tree_util.SequenceKey(each) if isinstance(each, int) else tree_util.GetAttrKey(str(each)) for each in path
    )


def named_keys(tree: Any, found: list[Any]) -> list[Any]:
    """`found`, the keys on the way to each leaf of `tree`, with attributes instead of numbers inside modules."""
    for node, depth, first in _nodes(tree, 0, 0):
        module = graph(node)
        if module is not None:
            for number, path in enumerate(module.leaves, first):
                found[number] = (*found[number][:depth], *keys(path))
    return found


def _nodes(tree: Any, depth: int, leaf: int) -> Iterator[tuple[Any, int, int]]:
    """Modules under `tree`, each with its depth and the number of its first leaf."""
    node = tree.node_data()
    if node is None or tree.num_leaves == 0:
        return
    if node[0].__name__ == "NodeStates":
        yield tree, depth, leaf
        return
    if depth < 6:  # arguments, containers of them
        for child in tree.children():
            yield from _nodes(child, depth + 1, leaf)
            leaf += child.num_leaves
