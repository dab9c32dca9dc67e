"""Two trees of arguments, gone through side by side from the top down to where they part.

Told are the places where they part, and the leaves that are in the same places on both sides.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jaxobs import internals
from jaxobs.internals.flax_graphs import Graph
from jaxobs.reasons import signature as signatures
from jaxobs.reasons import statics, texts
from jaxobs.reasons.described import by_identity, described, qualname
from jaxobs.reasons.signature import Signature, Static, equal

Keys = tuple[Any, ...]
Texts = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Parting:
    """A place where the trees part."""

    keys: Keys
    """On the way to it."""
    texts: Callable[[], Texts]
    """Before and after; expensive, so asked for only where they are shown."""
    static: bool = False
    """Whether static arguments are there."""


@dataclass(frozen=True, slots=True)
class Aligned:
    """Leaves in a row that are in the same places: numbers of the first ones, and how many."""

    old: int
    new: int
    count: int


def walk(old: Signature, new: Signature) -> Iterator[Parting | Aligned]:
    """Everything of two signatures; what is aligned may still differ leaf by leaf."""
    if new.tree is old.tree:
        return iter((Aligned(0, 0, len(new.leaves)),))
    return _Walk(old, new).compare(old.tree, new.tree, (), (0, 0))


class _Walk:
    def __init__(self, old: Signature, new: Signature) -> None:
        self._sides = (old, new)
        self._known: list[Sequence[Sequence[Any]] | None] = [None, None]

    def compare(self, a: Any, b: Any, keys: Keys, at: tuple[int, int]) -> Iterator[Parting | Aligned]:
        """Compares subtrees at `keys`, whose first leaves are numbers `at` of their sides."""
        if signatures.same_tree(a, b):
            if b.num_leaves:
                yield Aligned(*at, b.num_leaves)
            return
        node_a, node_b = a.node_data(), b.node_data()
        if node_a is None or node_b is None or node_a[0] is not node_b[0]:
            yield Parting(keys, lambda: self._parted(a, b, at), self._static(a, b, at))
            return
        parted = False
        for found in self._below(a, b, keys, at):
            parted = parted or isinstance(found, Parting)
            yield found
        if not parted:
            yield Parting(keys, lambda: self._metadata(node_b[0], node_a[1], node_b[1]))

    def _below(self, a: Any, b: Any, keys: Keys, at: tuple[int, int]) -> Iterator[Parting | Aligned]:
        """Inside two unequal nodes of one type."""
        modules = [internals.flax_graphs.graph(statics.restored(each)) for each in (a, b)]
        if modules[0] is not None and modules[1] is not None:
            yield from self._modules(modules[0], modules[1], keys, at)
            return
        (kind, data_a), (_, data_b) = a.node_data(), b.node_data()
        children = a.children(), b.children()
        named = [
            signatures.child_keys(kind, data, len(below))
            for data, below in zip((data_a, data_b), children, strict=True)
        ]
        if named[0] is None or named[1] is None:
            if not equal(data_a, data_b):
                yield Parting(keys, lambda: self._metadata(kind, data_a, data_b))
            named = [self._keys_of_children(side, children[side], len(keys), at[side]) for side in (0, 1)]
            _name_alike(children, named)
        yield from self._match(children, named, keys, at)

    def _modules(self, a: Graph, b: Graph, keys: Keys, at: tuple[int, int]) -> Iterator[Parting | Aligned]:
        """Two modules of Flax NNX, attribute by attribute."""
        places = [
            {path: leaf for leaf, path in enumerate(module.leaves, first)}
            for module, first in zip((a, b), at, strict=True)
        ]
        for path in dict.fromkeys([*places[0], *places[1], *a.statics, *b.statics, *a.kinds, *b.kinds]):
            where = (*keys, *internals.flax_graphs.keys(path))
            leaves = places[0].get(path), places[1].get(path)
            if leaves[0] is not None and leaves[1] is not None:
                yield Aligned(leaves[0], leaves[1], 1)
            elif leaves != (None, None):
                told = [
                    "absent" if leaf is None else str(side.leaves[leaf])
                    for side, leaf in zip(self._sides, leaves, strict=True)
                ]
                yield Parting(where, lambda told=told: (told[0], told[1]))  # type: ignore[misc]
                continue
            kinds = a.kinds.get(path), b.kinds.get(path)
            if kinds[0] is not kinds[1]:
                yield Parting(where, lambda kinds=kinds: _classes(*kinds))  # type: ignore[misc]
            elif path in a.statics and path in b.statics and not statics.alike(a.statics[path], b.statics[path]):
                values = a.statics[path], b.statics[path]
                yield Parting(where, lambda values=values: self._metadata(type(values[1]), *values))  # type: ignore[misc]

    def _match(
        self, children: tuple[list[Any], list[Any]], named: list[Any], keys: Keys, at: tuple[int, int]
    ) -> Iterator[Parting | Aligned]:
        """Compares children of the same key, and reports those that the other side lacks."""
        places: list[dict[Any, tuple[Any, int]]] = [{}, {}]
        for side in (0, 1):
            leaf = at[side]
            for number, (key, child) in enumerate(zip(named[side], children[side], strict=True)):
                # A node of the user's may give one key to several children.
                places[side][signatures.sequence_key(number) if key in places[side] else key] = (child, leaf)
                leaf += child.num_leaves
        for key in [*places[0], *(each for each in places[1] if each not in places[0])]:
            below = (*keys, key)
            before, after = places[0].get(key), places[1].get(key)
            if before is not None and after is not None:
                yield from self.compare(before[0], after[0], below, (before[1], after[1]))
            elif before is not None:
                static = self._static(before[0], None, (before[1], 0))
                yield Parting(below, lambda before=before: (self._text(0, *before), "absent"), static)  # type: ignore[misc]
            elif after is not None:
                static = self._static(None, after[0], (0, after[1]))
                yield Parting(below, lambda after=after: ("absent", self._text(1, *after)), static)  # type: ignore[misc]

    def _keys_of_children(self, side: int, children: list[Any], depth: int, leaf: int) -> list[Any]:
        """Keys of a user's node: those on the way to the first leaf of each child; a number where it has none."""
        known = self._known[side]
        if known is None:
            known = self._known[side] = signatures.keys(self._sides[side].tree)
        found: list[Any] = []
        for number, child in enumerate(children):
            found.append(known[leaf][depth] if child.num_leaves else signatures.sequence_key(number))
            leaf += child.num_leaves
        return found

    # ------------------------------------------------------------------------------------------------ texts

    def _parted(self, a: Any, b: Any, at: tuple[int, int]) -> Texts:
        """Returns texts of both sides of a place where only one has a node, or the types differ."""
        before, after = self._text(0, a, at[0]), self._text(1, b, at[1])
        if before != after:
            return before, after
        nodes = a.node_data(), b.node_data()
        return _classes(*(None if node is None else node[0] for node in nodes))

    def _metadata(self, kind: type, before: Any, after: Any) -> Texts:
        """Returns texts of the metadata next to the arrays in a user's node, where it differs."""
        if not self._sides[1].quotes:
            return f"metadata of {qualname(kind)}", f"different metadata of {qualname(kind)}"
        before, after = statics.shown(before), statics.shown(after)
        both = described(before), described(after)
        if both[0] != both[1]:
            return texts.difference(*both)
        items = after if type(after) in (tuple, list) else after.values() if type(after) is dict else ()
        if any(by_identity(type(each)) for each in (after, *items)):
            return both[0], f"{both[1]} (another object; it compares by identity)"
        return f"metadata of {qualname(kind)}", "metadata that looks the same but is not equal"

    def _static(self, a: Any, b: Any, at: tuple[int, int]) -> bool:
        """Returns whether the differing parts are static arguments on both sides, or on the one that has them."""
        leaves = [
            self._sides[side].leaves[at[side]] if tree is not None and tree.num_nodes == tree.num_leaves == 1 else None
            for side, tree in enumerate((a, b))
        ]
        there = [leaf for leaf, tree in zip(leaves, (a, b), strict=True) if tree is not None]
        return all(isinstance(leaf, Static) for leaf in there)

    def _text(self, side: int, tree: Any, leaf: int) -> str:
        """Returns the text of a place: a leaf as it is, a container by its type and size."""
        node = tree.node_data()
        if node is None:
            return "None" if tree.num_leaves == 0 else str(self._sides[side].leaves[leaf])
        kind = node[0]
        if kind is type(None):
            return "None"
        if kind in (list, tuple, dict):
            return f"a {kind.__name__} of {len(tree.children())}"
        return _a(kind)


def _name_alike(children: tuple[list[Any], list[Any]], named: list[Any]) -> None:
    """A child without leaves, as None, has only a number: it takes the key that the other side has in its place."""
    if len(named[0]) != len(named[1]):
        return
    for number, (before, after) in enumerate(zip(*children, strict=True)):
        if bool(before.num_leaves) != bool(after.num_leaves):
            side = 0 if after.num_leaves else 1
            if named[1 - side][number] not in named[side]:
                named[side][number] = named[1 - side][number]


def _classes(old: Any, new: Any) -> Texts:
    """Two types of nodes; two of one name are distinguished by their modules, or as one that was defined again."""
    if old is None or new is None:
        return _a(old), _a(new)
    before, after = _a(old), _a(new)
    return (before, after) if before != after else (before, f"{after} ({texts.of_another_class(old, new)})")


def _a(kind: Any) -> str:
    if kind is None:
        return "absent"
    name = getattr(kind, "__qualname__", str(kind))
    return f"{'an' if name[:1] in 'AEIOU' else 'a'} {name}"
