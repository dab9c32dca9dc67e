"""What differs between two signatures, each difference with the argument's path as the user wrote it."""

from __future__ import annotations

import itertools
import operator
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from jaxobs import internals
from jaxobs import signature as signatures
from jaxobs.facts import Change
from jaxobs.internals.flax_graphs import Graph
from jaxobs.signature import Leaf, Signature, Static, equal

MOST_CHANGES = 256
"""Differences that are listed; a signature that differs in more is told by these."""

_OPTION_NAMES = {
    "in_shardings_leaves": "in_shardings",
    "out_shardings_leaves": "out_shardings",
    "in_layouts_leaves": "in_shardings",
    "out_layouts_leaves": "out_shardings",
    "compiler_options_kvs": "compiler_options",
}


def nearest(new: Signature, earlier: Sequence[Signature]) -> Signature | None:
    """The earlier signature that differs least; the newest of those that differ equally."""
    found, least = None, (1 << 30, 1 << 30)
    for old in reversed(earlier):
        if equal(new, old):
            return old
        distance = _distance(new, old)
        if distance < least:
            found, least = old, distance
    return found


def _distance(new: Signature, old: Signature) -> tuple[int, int]:
    """Kinds of difference first, then how many: a signature that differs in one shape is nearer than in two."""
    same_tree = new.tree is old.tree
    kinds = (not same_tree) + (new.options != old.options) + (new.context != old.context)
    if not same_tree:
        return kinds + (len(new.leaves) != len(old.leaves)), len(new.leaves)
    many = 0
    static = False
    for a, b in itertools.islice(_unlike(new, old), MOST_CHANGES):  # beyond these both are far
        if isinstance(a, Static) or isinstance(b, Static):
            static, many = True, many + 1
        else:
            many += (a.shape != b.shape) + (a.dtype != b.dtype or a.weak_type != b.weak_type)
            many += (a.sharding != b.sharding) + (a.layout != b.layout)
    return kinds + static, many


def _unlike(a: Signature, b: Signature) -> Iterator[tuple[Leaf | Static, Leaf | Static]]:
    """Pairs of leaves that differ; most are the same object, which is seen without a look at the leaf."""
    others = itertools.compress(zip(a.leaves, b.leaves, strict=True), map(operator.is_not, a.leaves, b.leaves))
    return (pair for pair in others if pair[0] != pair[1])


def changes(fun: Any, old: Signature, new: Signature) -> list[Change]:
    """Every difference: of the arguments, the options of `jax.jit`, and the context."""
    found: list[Change] = []
    parameters = signatures.parameter_names(fun)
    if new.tree is not old.tree:
        found += _Structures(old, new, parameters).changes()
    if new.tree is old.tree or _same_leaves(old, new):
        found += _leaves_changes(parameters, old, new)
    found += _named_changes("jit_options", old.options, new.options)
    before, after = dict(old.context), dict(new.context)
    for setting in sorted(before.keys() | after.keys()):
        was, now = (
            each[setting] if setting in each else internals.context.usual_text(setting) for each in (before, after)
        )
        if was != now:
            found.append(Change(setting, "context", was, now))
    return found[:MOST_CHANGES]


def _named_changes(what: str, old: tuple[tuple[str, str], ...], new: tuple[tuple[str, str], ...]) -> Iterator[Change]:
    before = dict(old)
    for name, value in new:
        was = before.get(name, value)
        if was != value:
            plain = _plain_shardings(was), _plain_shardings(value)
            yield Change(
                _OPTION_NAMES.get(name, name), what, *_difference(*(plain if plain[0] != plain[1] else (was, value)))
            )


def _plain_shardings(text: str) -> str:
    """The text of an option with shardings by their specs alone."""
    text = re.sub(r"NamedSharding\(mesh=.*?spec=(P\(.*?\)), memory_kind=\w+\)", lambda found: found[1], text)
    text = re.sub(r"SingleDeviceSharding\(device=\w+\(id=(\d+)\), memory_kind=\w+\)", r"device \1", text)
    return text.replace("UnspecifiedValue", "unspecified").replace(",)", ")")


def _same_leaves(old: Signature, new: Signature) -> bool:
    """Whether the leaves of two unequal trees stand in the same places: only what is around them differs."""
    if len(old.leaves) != len(new.leaves):
        return False
    before, after = signatures.keys(old.tree), signatures.keys(new.tree)
    return all(equal(a, b) for a, b in zip(before, after, strict=True))


# ----------------------------------------------------------------------------------------------------- leaves


def _leaves_changes(parameters: list[str], old: Signature, new: Signature) -> list[Change]:
    pairs = enumerate(zip(old.leaves, new.leaves, strict=True))
    unlike = (number for number, (a, b) in pairs if a is not b and a != b)
    positions = list(itertools.islice(unlike, MOST_CHANGES))
    keys = signatures.keys_at(new.tree, positions)
    # Many leaves change alike, and a text is dear.
    alike: dict[tuple[int, int], list[tuple[str, str, str]]] = {}
    found: list[Change] = []
    for number in positions:
        before, after = old.leaves[number], new.leaves[number]
        key = (id(before), id(after))
        if key not in alike:
            alike[key] = _leaf_changes(before, after)
        path = signatures.path(keys[number], parameters)
        found += [Change(path, *change) for change in alike[key]]
    return found


def _leaf_changes(old: Leaf | Static, new: Leaf | Static) -> list[tuple[str, str, str]]:
    """What differs, before and after."""
    if isinstance(old, Static) or isinstance(new, Static):
        return [("static_argument", *_static_texts(old, new))]
    found = []
    typed = old.dtype != new.dtype
    for what, differs in (
        ("shape", old.shape != new.shape),
        ("dtype", typed),
        ("weak_type", old.weak_type != new.weak_type and not typed),
    ):
        if differs:
            found.append((what, str(old), str(new)))
    if old.sharding != new.sharding:
        what = "sharding" if _where(old.sharding) == _where(new.sharding) else "placement"
        found.append((what, *_sharding_texts(old.sharding, new.sharding)))
    if old.layout != new.layout:
        found.append(("layout", old.layout or "the usual layout", new.layout or "the usual layout"))
    return found


def _static_texts(old: Leaf | Static, new: Leaf | Static) -> tuple[str, str]:
    before, after = str(old), str(new)
    if before != after:
        return before, after
    if isinstance(new, Static) and not new.equals_itself:
        why = "NaN never equals itself" if after == "nan" else "never equals itself"
    elif isinstance(new, Static) and new.by_identity:
        why = "another object; it compares by identity"
    else:
        why = "another object, not equal to it"
    return before, f"{after} ({why})"


def _where(sharding: Any) -> tuple[frozenset[Any], Any] | None:
    """Devices and kind of memory."""
    return None if sharding is None else (frozenset(sharding.device_set), getattr(sharding, "memory_kind", None))


def _sharding_texts(old: Any, new: Any) -> tuple[str, str]:
    """As short as tells them apart: the specs, then the meshes, the devices, the kinds of memory."""
    if old is None or new is None:
        return _placed(old), _placed(new)
    before, after = _spec(old), _spec(new)
    if before is not None and after is not None:
        meshes = [dict(getattr(each.mesh, "shape", {})) for each in (old, new)]
        if meshes[0] != meshes[1]:
            before, after = f"{before} on {meshes[0]}", f"{after} on {meshes[1]}"
    else:
        before, after = before or _devices(old), after or _devices(new)
    if before == after and old.device_set != new.device_set:
        before, after = f"{before} on {_devices(old)}", f"{after} on {_devices(new)}"
    if before == after:
        kinds = [getattr(each, "memory_kind", None) for each in (old, new)]
        if kinds[0] != kinds[1]:
            before, after = (f"{text} in {kind}" for text, kind in zip((before, after), kinds, strict=True))
    if before == after:
        before, after = _difference(str(old), str(new))
    return before, after


def _placed(sharding: Any) -> str:
    if sharding is None:
        return "uncommitted"
    spec = _spec(sharding)
    return f"committed to {_devices(sharding)}" if spec is None else f"{spec} on {dict(sharding.mesh.shape)}"


def _spec(sharding: Any) -> str | None:
    spec = getattr(sharding, "spec", None)
    return None if spec is None else f"P({', '.join(map(repr, spec))})"


def _devices(sharding: Any) -> str:
    devices = sorted(sharding.device_set, key=lambda device: device.id)
    more = f" and {len(devices) - 8} more" if len(devices) > 8 else ""
    return ", ".join(f"{each.platform}:{each.id}" for each in devices[:8]) + more


# -------------------------------------------------------------------------------------------------- structure


class _Structures:
    """Two trees, gone through side by side from the top down to where they part."""

    def __init__(self, old: Signature, new: Signature, parameters: list[str]) -> None:
        self._sides = (old, new)
        self._keys = (signatures.keys(old.tree), signatures.keys(new.tree))
        self._parameters = parameters
        self._found: list[Change] = []

    def changes(self) -> list[Change]:
        """Where the trees part."""
        old, new = self._sides
        self._compare(old.tree, new.tree, (), (0, 0))
        moved = _passed_otherwise(self._found)
        if not moved and not self._found:
            kind = type(old.tree)
            moved = [Change("", "structure", *self._metadata(kind, old.tree, new.tree))]
        return moved or self._found

    def _compare(self, a: Any, b: Any, keys: tuple[Any, ...], at: tuple[int, int]) -> None:
        """Compares subtrees at `keys`, whose first leaves are numbers `at` of their sides."""
        if len(self._found) >= MOST_CHANGES or equal(a, b):
            return
        node_a, node_b = a.node_data(), b.node_data()
        if node_a is None or node_b is None or node_a[0] is not node_b[0]:
            self._add(keys, self._text(0, a, at[0]), self._text(1, b, at[1]), self._static(a, b, at))
            return
        kind = node_a[0]
        modules = internals.flax_graphs.graph(a), internals.flax_graphs.graph(b)
        if modules[0] is not None and modules[1] is not None:
            self._compare_modules(modules[0], modules[1], keys, at)
            return
        sides = ((node_a[1], a.children(), at[0]), (node_b[1], b.children(), at[1]))
        named = [signatures.child_keys(kind, data, len(children)) for data, children, _ in sides]
        if named[0] is None or named[1] is None:
            if not equal(node_a[1], node_b[1]):
                self._add(keys, *self._metadata(kind, node_a[1], node_b[1]))
            named = [
                self._keys_of_children(side, children, len(keys), leaf)
                for side, (_, children, leaf) in enumerate(sides)
            ]
        self._match((sides[0][1], sides[1][1]), named, keys, at)

    def _compare_modules(self, a: Graph, b: Graph, keys: tuple[Any, ...], at: tuple[int, int]) -> None:
        """Two modules of Flax NNX, attribute by attribute."""
        places = [
            {path: leaf for leaf, path in enumerate(module.leaves, first)}
            for module, first in zip((a, b), at, strict=True)
        ]
        for path in dict.fromkeys([*places[0], *places[1], *a.statics, *b.statics, *a.kinds, *b.kinds]):
            where = (*keys, *internals.flax_graphs.keys(path))
            if path in places[0] or path in places[1]:
                texts = [
                    str(side.leaves[place[path]]) if path in place else "absent"
                    for side, place in zip(self._sides, places, strict=True)
                ]
                if "absent" in texts:
                    self._add(where, texts[0], texts[1])
            elif path in a.statics and path in b.statics:
                if not equal(a.statics[path], b.statics[path]):
                    self._add(where, *self._metadata(type(b.statics[path]), a.statics[path], b.statics[path]))
            elif a.kinds.get(path) != b.kinds.get(path):
                was, now = (f"a {m.kinds[path]}" if path in m.kinds else "absent" for m in (a, b))
                self._add(where, was, now)

    def _metadata(self, kind: type, before: Any, after: Any) -> tuple[str, str]:
        """What stands beside the arrays in a user's node, where it differs."""
        if not self._sides[1].quotes:
            return f"metadata of {kind.__qualname__}", f"other metadata of {kind.__qualname__}"
        texts = signatures.text_of(before), signatures.text_of(after)
        plain = tuple(signatures.without_addresses(text) for text in texts)
        if plain[0] != plain[1]:
            return _difference(*plain)
        if texts[0] == texts[1]:
            return f"metadata of {kind.__qualname__}", "metadata that looks the same and is not equal"
        was, now = (signatures.without_addresses(text) for text in _difference(*texts))
        return was, f"{now} (another object; it compares by identity)"

    def _match(self, children: Any, named: Any, keys: tuple[Any, ...], at: tuple[int, int]) -> None:
        """Compares children of the same key, and tells of those that the other side lacks."""
        places: list[dict[Any, tuple[Any, int]]] = [{}, {}]
        for side in (0, 1):
            leaf = at[side]
            for key, child in zip(named[side], children[side], strict=True):
                places[side][key] = (child, leaf)
                leaf += child.num_leaves
        for key in [*places[0], *(each for each in places[1] if each not in places[0])]:
            before, after = places[0].get(key), places[1].get(key)
            if before is not None and after is not None:
                self._compare(before[0], after[0], (*keys, key), (before[1], after[1]))
            elif before is not None:
                self._add((*keys, key), self._text(0, *before), "absent", self._static(before[0], None, (before[1], 0)))
            elif after is not None:
                self._add((*keys, key), "absent", self._text(1, *after), self._static(None, after[0], (0, after[1])))

    def _keys_of_children(self, side: int, children: list[Any], depth: int, leaf: int) -> list[Any]:
        """Keys of a user's node: those on the way to the first leaf of each child; a number where it has none."""
        found: list[Any] = []
        for number, child in enumerate(children):
            found.append(self._keys[side][leaf][depth] if child.num_leaves else signatures.sequence_key(number))
            leaf += child.num_leaves
        return found

    def _add(self, keys: tuple[Any, ...], before: str, after: str, static: bool = False) -> None:
        path = signatures.path(keys, self._parameters)
        self._found.append(Change(path, "static_argument" if static else "structure", before, after))

    def _static(self, a: Any, b: Any, at: tuple[int, int]) -> bool:
        """Whether what parts here are static arguments on both sides, or on the one that has it."""
        leaves = [
            self._sides[side].leaves[at[side]] if tree is not None and tree.num_nodes == tree.num_leaves == 1 else None
            for side, tree in enumerate((a, b))
        ]
        there = [leaf for leaf, tree in zip(leaves, (a, b), strict=True) if tree is not None]
        return all(isinstance(leaf, Static) for leaf in there)

    def _text(self, side: int, tree: Any, leaf: int) -> str:
        """What stands there: a leaf as it is, a container by its type and size."""
        node = tree.node_data()
        if node is None:
            return "None" if tree.num_leaves == 0 else str(self._sides[side].leaves[leaf])
        kind = node[0]
        if kind is type(None):
            return "None"
        size = len(tree.children())
        article = "an" if kind.__qualname__[0] in "AEIOU" else "a"
        return f"a {kind.__name__} of {size}" if kind in (list, tuple, dict) else f"{article} {kind.__qualname__}"


def _passed_otherwise(found: list[Change]) -> list[Change]:
    """An argument that left its position and came as a keyword, or the other way round: one change, not two."""
    gone = {each.path: each for each in found if each.after == "absent"}
    come = {each.path: each for each in found if each.before == "absent"}
    both = [path for path in gone if path in come]
    if not both:
        return []
    rest = [each for each in found if each.path not in both]
    first = found.index(gone[both[0]]) < found.index(come[both[0]])
    ways = ("given by position", "given by keyword")
    moved = [
        Change(path, "structure", *(ways if found.index(gone[path]) < found.index(come[path]) else ways[::-1]))
        for path in both
    ]
    return (moved + rest) if first else (rest + moved)


def _difference(before: str, after: str) -> tuple[str, str]:
    """Where two texts differ, each with a little of what stands before it; the whole where they are short."""
    before, after = " ".join(before.split()), " ".join(after.split())
    if max(len(before), len(after)) <= 80:
        return before, after
    same = len(os.path.commonprefix([before, after]))
    tail = len(os.path.commonprefix([before[same:][::-1], after[same:][::-1]]))
    # What it is called stands before the value: `('deterministic', Static(value=False))`.
    cuts = [match.end() for match in re.finditer(r"[\s,(\[{]", before[:same]) if match.end() >= same - 60]
    start = max((cut for cut in cuts if cut <= same - 20), default=max(0, same - 60))

    def piece(text: str) -> str:
        end = re.compile(r"[\s,)\]}]|$").search(text, max(same, len(text) - tail))
        return signatures.shortened(text[start : end.start() if end else len(text)])

    return piece(before), piece(after)
