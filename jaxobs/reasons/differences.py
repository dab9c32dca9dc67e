"""Differences between two signatures, each with the argument's path as the user wrote it."""

from __future__ import annotations

import dataclasses
import itertools
import operator
from collections.abc import Iterator, Sequence
from typing import Any

from jaxobs import internals
from jaxobs.facts.compilations import Change
from jaxobs.internals import shardings
from jaxobs.reasons import options, statics, structures, texts
from jaxobs.reasons import signature as signatures
from jaxobs.reasons.signature import Leaf, Signature, Static, equal
from jaxobs.reasons.structures import Aligned, Parting

MOST_CHANGES = 256
"""Differences that are listed; a signature that differs in more is described by these."""
MOST_NODES = 200_000
"""Nodes of trees that are gone through for one comparison with all earlier signatures, the most alike first."""


def nearest(new: Signature, earlier: Sequence[Signature]) -> Signature | None:
    """Returns the earlier signature that differs least; the newest of those that differ equally."""
    latest_first = earlier[::-1]
    found, least, nodes = None, (1 << 30, 1 << 30, 0), 0
    trees = [(new.tree is not each.tree, abs(new.tree.num_nodes - each.tree.num_nodes)) for each in latest_first]
    # A first guess that costs nothing: those of the same tree come first, then other trees by their sizes.
    for age, old in sorted(enumerate(latest_first), key=lambda each: trees[each[0]]):
        if equal(new, old):
            return old
        if new.tree is not old.tree:
            nodes += old.tree.num_nodes
            if found is not None and nodes > MOST_NODES:
                break
        distance = (*_distance(new, old), age)
        if distance < least:
            found, least = old, distance
    return found


def _distance(new: Signature, old: Signature) -> tuple[int, int]:
    """Kinds of difference first, then how many: a signature that differs in one shape is nearer than in two."""
    structure = static = False
    settings, jit_options = len(set(new.context) ^ set(old.context)), len(set(new.options) ^ set(old.options))
    many = settings + jit_options
    for found in structures.walk(old, new):
        if isinstance(found, Parting):
            structure, static, many = structure or not found.static, static or found.static, many + 1
        else:
            for a, b in itertools.islice(_unlike(old, new, found), MOST_CHANGES):
                if isinstance(a, Static) or isinstance(b, Static):
                    static, many = True, many + 1
                else:
                    many += (a.shape != b.shape) + (a.dtype != b.dtype or a.weak_type != b.weak_type)
                    many += (a.sharding != b.sharding) + (a.layout != b.layout)
        if many > MOST_CHANGES:  # beyond these all are far
            break
    return structure + static + bool(settings) + bool(jit_options), many


def _unlike(old: Signature, new: Signature, rows: Aligned) -> Iterator[tuple[Leaf | Static, Leaf | Static]]:
    """Pairs of leaves that differ; most are the same object, which is seen without a look at the leaf."""
    if rows.count == 1:
        a, b = old.leaves[rows.old], new.leaves[rows.new]
        return iter(((a, b),) if a is not b and a != b else ())
    before = old.leaves[rows.old : rows.old + rows.count]
    after = new.leaves[rows.new : rows.new + rows.count]
    others = itertools.compress(zip(before, after, strict=True), map(operator.is_not, before, after))
    return (pair for pair in others if pair[0] != pair[1])


def changes(fun: Any, old: Signature, new: Signature) -> list[Change]:
    """Returns the differences of arguments, options of `jax.jit` and context. Before and after always differ."""
    found: list[Change] = []
    parameters = signatures.parameter_names(fun)
    aligned: list[Aligned] = []
    for part in structures.walk(old, new):
        if isinstance(part, Aligned):
            aligned.append(part)
        elif len(found) < MOST_CHANGES:
            path = signatures.path(part.keys, parameters)
            found.append(Change(path, "static_argument" if part.static else "structure", *part.texts()))
    found = _passed_otherwise(found)
    found += _leaves_changes(parameters, old, new, aligned)
    found += options.changes(old.options, new.options)
    before, after = dict(old.context), dict(new.context)
    for setting in sorted(before.keys() | after.keys()):
        was, now = (
            each[setting] if setting in each else internals.context.usual_text(setting) for each in (before, after)
        )
        if was != now:
            found.append(Change(setting, "context", *texts.difference(was, now)))
    return found[:MOST_CHANGES]


def _leaves_changes(parameters: list[str], old: Signature, new: Signature, aligned: list[Aligned]) -> list[Change]:
    unlike: list[tuple[Leaf | Static, Leaf | Static, int]] = []
    for rows in aligned:
        olds = old.leaves[rows.old : rows.old + rows.count]
        news = new.leaves[rows.new : rows.new + rows.count]
        # Most are the same object, which is seen without a look at each.
        for number in itertools.compress(range(rows.count), map(operator.is_not, olds, news)):
            if olds[number] != news[number]:
                unlike.append((olds[number], news[number], rows.new + number))
                if len(unlike) == MOST_CHANGES:
                    break
        if len(unlike) == MOST_CHANGES:
            break
    unlike.sort(key=operator.itemgetter(2))
    keys = signatures.keys_at(new.tree, [position for _, _, position in unlike])
    # Many leaves change alike, and a text is expensive.
    alike: dict[tuple[int, int], list[tuple[str, str, str]]] = {}
    found: list[Change] = []
    for before, after, position in unlike:
        key = (id(before), id(after))
        if key not in alike:
            alike[key] = _leaf_changes(before, after)
        path = signatures.path(keys[position], parameters)
        found += [Change(path, *change) for change in alike[key]]
    return found


def _leaf_changes(old: Leaf | Static, new: Leaf | Static) -> list[tuple[str, str, str]]:
    if isinstance(old, Static) or isinstance(new, Static):
        return [("static_argument", *_static_texts(old, new))]
    found = []
    typed = old.dtype != new.dtype
    for what, differs, was, now in (
        ("shape", old.shape != new.shape, old.shape, new.shape),
        ("dtype", typed, old.dtype, new.dtype),
        ("weak_type", old.weak_type != new.weak_type and not typed, None, None),
    ):
        if differs:
            found.append((what, *texts.unlike(str(old), str(new), was, now)))
    if old.sharding != new.sharding:
        what = "sharding" if where(old.sharding) == where(new.sharding) else "placement"
        found.append((what, *differing(old.sharding, new.sharding)))
    if old.layout != new.layout:
        found.append(("layout", old.layout or "the default layout", new.layout or "the default layout"))
    return found


def _static_texts(old: Leaf | Static, new: Leaf | Static) -> tuple[str, str]:
    before, after = str(old), str(new)
    if before != after:
        return before, after
    if not isinstance(old, Static) or not isinstance(new, Static):
        return before, f"{after} (static in one call only)"
    if old.text != new.text:
        return texts.difference(old.text, new.text)
    if not new.equals_itself:
        why = "NaN never equals itself" if after == "nan" else "never equals itself"
    elif old.type is not new.type:
        why = texts.of_another_class(old.type, new.type)
    elif new.by_identity:
        made = "" if old.made_at == new.made_at else f", created at {new.made_at} instead of {old.made_at}"
        why = f"another object{made}; it compares by identity"
    else:
        why = "another object, not equal to it"
    return before, f"{after} ({why})"


def doubtful(fun: Any, old: Signature, new: Signature) -> Iterator[Change]:
    """Yields static arguments, or metadata, that only the `__eq__` of the program, which we do not run, can compare."""
    pairs = enumerate(zip(old.leaves, new.leaves, strict=False))
    found = {number: pair[1] for number, pair in pairs if isinstance(pair[1], Static) and pair[1].may_differ(pair[0])}
    for number, keys in signatures.keys_at(new.tree, list(found)).items():
        path = signatures.path(keys, signatures.parameter_names(fun))
        yield Change(path, "static_argument", str(found[number]), f"{found[number]} (another object, not equal to it)")
    if not found:
        yield from changes(fun, *(dataclasses.replace(each, tree=statics.doubted(each.tree)) for each in (old, new)))


def _passed_otherwise(found: list[Change]) -> list[Change]:
    """Joins the changes of an argument that left its position and came as a keyword, or the other way round."""
    gone = {each.path: each for each in found if each.after == "absent"}
    come = {each.path: each for each in found if each.before == "absent"}
    both = [path for path in gone if path in come and path.isidentifier()]
    if not both:
        return found
    rest = [each for each in found if each.path not in both]
    first = found.index(gone[both[0]]) < found.index(come[both[0]])
    ways = ("passed by position", "passed by keyword")
    moved = [
        Change(path, "structure", *(ways if found.index(gone[path]) < found.index(come[path]) else ways[::-1]))
        for path in both
    ]
    return (moved + rest) if first else (rest + moved)


def where(sharding: Any) -> tuple[frozenset[Any] | None, Any] | None:
    """Devices, without their order, and kind of memory."""
    if sharding is None:
        return None
    devices = shardings.devices(sharding)
    return (None if devices is None else frozenset(devices), getattr(sharding, "memory_kind", None))


def differing(old: Any, new: Any) -> tuple[str, str]:
    """Spec or devices of both, then what else differs: mesh, order of devices, types of axes, kind of memory."""
    if old is None or new is None:
        return _placed(old), _placed(new)
    both = (old, new)
    specs = [_spec(each) for each in both]
    parts = [[spec or _devices(each)] for spec, each in zip(specs, both, strict=True)]

    def tell(*told: str | None) -> None:
        if told[0] != told[1]:
            for part, each in zip(parts, told, strict=True):
                if each is not None:
                    part.append(each)

    meshed = specs[0] is not None and specs[1] is not None
    if meshed:
        tell(*(_prefixed("on ", shardings.mesh_axes(each)) for each in both))
        tell(*_order(old, new))
        if len({shardings.mesh_axes(each) for each in both}) == 1:
            tell(*(_prefixed("axis types ", shardings.axis_types(each)) for each in both))
    elif specs == [None, None]:
        if type(old) is not type(new):
            tell(*(f"as a {type(each).__qualname__}" for each in both))
        if where(old) == where(new) or parts[0] == parts[1]:
            tell(*_order(old, new))
    tell(*(_prefixed("in ", getattr(each, "memory_kind", None)) for each in both))
    before, after = (" ".join(part) for part in parts)
    if before == after:
        before, after = texts.difference(str(old), str(new))
    return texts.unlike(before, after, old, new)


def _order(old: Any, new: Any) -> tuple[str | None, str | None]:
    """Returns the devices, if as many are in another order or are others; else the sizes of the meshes say more."""
    before, after = shardings.devices(old), shardings.devices(new)
    if before == after:
        return None, None
    if before is None or after is None:
        return _over(before), _over(after)
    if len(before) != len(after):
        return None, None
    name, lead = (shardings.ordered, "devices ") if set(before) == set(after) else (shardings.named, "on ")
    was, now = texts.difference(name(before), name(after))
    return lead + was, lead + now


def _over(devices: tuple[Any, ...] | None) -> str:
    return "over an abstract mesh" if devices is None else f"on {shardings.named(devices)}"


def _placed(sharding: Any) -> str:
    if sharding is None:
        return "uncommitted"
    spec = _spec(sharding)
    return f"committed to {_devices(sharding)}" if spec is None else f"{spec} on {shardings.mesh_axes(sharding)}"


def _prefixed(before: str, value: Any) -> str | None:
    return None if value is None else f"{before}{value}"


def _spec(sharding: Any) -> str | None:
    spec = getattr(sharding, "spec", None)
    if spec is None:
        return None
    # Iterating raises where some axes are unreduced.
    axes = [repr(each) for each in getattr(spec, "partitions", spec)]
    for name in ("unreduced", "reduced"):  # since JAX 0.7
        among = getattr(spec, name, None)
        if among:
            axes.append(f"{name}={{{', '.join(sorted(map(repr, among)))}}}")
    return f"P({', '.join(axes)})"


def _devices(sharding: Any) -> str:
    devices = shardings.devices(sharding)
    if devices is None:
        return str(sharding)
    devices = tuple(sorted(devices, key=lambda device: device.id))
    more = f" and {len(devices) - 8} more" if len(devices) > 8 else ""
    return ", ".join(f"{each.platform}:{each.id}" for each in devices[:8]) + more
