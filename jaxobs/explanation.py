"""Why it compiled: the new signature against the nearest of those that the function was compiled for before.

A *program* is what JAX would compile once: one code object, or one primitive with its parameters, under one
transformation. For each program the history keeps signatures and function objects, bounded and by weak reference.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import operator
import os
import re
import types
import weakref
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from jaxobs import internals
from jaxobs import signature as signatures
from jaxobs.facts import Change
from jaxobs.history import History, Program, equal
from jaxobs.signature import Leaf, Signature

MOST_NAMED = 4

_CURES = {
    "shape": "Pad or bucket it to a fixed set of sizes, or drop the remainder batch.",
    "dtype": "Convert it once, before the loop: jnp.asarray(x, dtype).",
    "weak_type": "Make it an array of a fixed type once, before the loop: jnp.asarray(x, dtype).",
    "structure": "Keep one structure: the same keys, containers and None fields in every call.",
    "static_argument": "Pass what varies as an array; keep static only what rarely changes and compares by value.",
    "sharding": "Place it before the first call as the function returns it: jax.device_put(x, sharding).",
    "placement": "Keep it on one placement from the first call on: jax.device_put(x, device_or_sharding).",
    "jit_options": "Keep one jitted object for each function instead of jitting it again with other options.",
    "context": "Set it once, before the first call, or around every call alike.",
    "cache_cleared": "Clear caches rarely: every function that is called afterwards compiles again.",
    "new_function": "Make the function and its jit once, outside the loop, and reuse them.",
}
_ORDER = (
    "new_function", "structure", "static_argument", "shape", "dtype", "weak_type", "jit_options", "context", "sharding",
    "placement",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Explanation:
    cause: str
    reason: str
    changes: tuple[Change, ...] = ()


class Explainer:
    """Remembers what was compiled, and says of each new miss what differs. Not thread-safe: its owner locks."""

    def __init__(self, history: History | None = None) -> None:
        self.history = History() if history is None else history
        self.late = False
        """Whether JAX was in use before anybody looked: then the first miss seen may not have been the first."""

    def explain(
        self,
        name: str,
        fun: Any,
        signature: Signature | None,
        transform: str | None = None,
        *,
        phases: frozenset[str] = frozenset(),
    ) -> Explanation:
        """The cause of a miss of `fun`, called `name` for people, and remembers the miss.

        Args:
          signature: of the call; None where the arguments were out of sight.
          transform: whose derived program was compiled, if any.
          phases: those that ran, which tell the class of the cause where the arguments cannot.
        """
        key = (identity(fun, name), name, transform)
        program = self.history.program(key)
        signature = program.sharing(signature)
        known = any(_same(each.function(), fun) for each in program.seen)
        explanation = self._explain(name, fun, signature, transform, program, known, phases)
        program.objects += not known
        self.history.remember(key, _reference(fun), signature)
        return explanation

    def _explain(
        self,
        name: str,
        fun: Any,
        new: Signature | None,
        transform: str | None,
        program: Program,
        known: bool,
        phases: frozenset[str],
    ) -> Explanation:
        if not program.seen:
            under = {
                "linearize": " under jax.grad, its forward pass",
                "transpose": " under jax.grad, its backward pass",
                "batch": " under jax.vmap",
            }
            seen = " that jaxobs saw; it was installed when JAX was in use already" if self.late else ""
            return Explanation("first_call", f"First call of `{name}`{under.get(transform or '', '')}{seen}.")
        old = _nearest(new, program.signatures())
        changes = () if new is None or old is None else tuple(_changes(fun, old, new))
        if fun is not None and not known and transform is None and not getattr(fun, "_apply_primitive", False):
            made = f"It is function object number {program.objects + 1} made from the same code"
            also = f"; with it, {_listed(changes)}" if changes else ""
            reason = f"`{name}` is a new function object to JAX. {made}{also}. {_CURES['new_function']}"
            return Explanation("new_function", reason, changes)
        if changes:
            cause = min((c.what for c in changes), key=_ORDER.index)
            return Explanation(cause, f"`{name}`: {_listed(changes)}. {_CURES[cause]}", changes)
        if new is not None and old is not None and old.generation < new.generation:
            reason = f"`{name}` was compiled for these arguments before, and JAX's caches were emptied since then"
            return Explanation("cache_cleared", f"{reason}. {_CURES['cache_cleared']}")
        return Explanation("unknown", f"`{name}` compiled again, {_by_class(new is not None, phases)}.")


def _by_class(saw_arguments: bool, phases: frozenset[str]) -> str:
    what = "with arguments that look as before" if saw_arguments else "with its arguments out of sight"
    if "trace" in phases:
        return f"{what}; it was traced anew, so a signature, a config value or a context manager changed"
    if "lower" in phases:
        return f"{what}; it was lowered anew but not traced, so a sharding, a placement or a layout changed"
    return f"{what}; it was neither traced nor lowered anew, so the devices changed"


_NEXT_TO_EQUAL = (0, 1)


def _nearest(new: Signature | None, earlier: list[Signature]) -> Signature | None:
    if new is None or not earlier:
        return None
    newest_first = earlier[::-1]
    for old in newest_first:
        if equal(new, old):
            return old
    nearest, least = newest_first[0], _distance(new, newest_first[0])
    for old in newest_first[1:]:
        if least <= _NEXT_TO_EQUAL:
            break
        distance = _distance(new, old)
        if distance < least:
            nearest, least = old, distance
    return nearest


def _distance(new: Signature, old: Signature) -> tuple[int, int]:
    """Kinds of difference first, then how many: a signature that differs in one shape is nearer than in two."""
    same_tree = new.tree is old.tree
    kinds = (not same_tree) + (new.statics != old.statics) + (new.options != old.options)
    kinds += new.context != old.context
    if not same_tree:
        return kinds, len(new.leaves)
    return kinds, sum(
        (a.shape != b.shape) + (a.dtype != b.dtype or a.weak_type != b.weak_type) + (a.sharding != b.sharding)
        for a, b in _unlike(new, old)
    )


def _unlike(a: Signature, b: Signature) -> Iterator[tuple[Leaf, Leaf]]:
    """Pairs of leaves that differ; most are the same object, which is seen without a look at the leaf."""
    others = itertools.compress(zip(a.leaves, b.leaves, strict=True), map(operator.is_not, a.leaves, b.leaves))
    return (pair for pair in others if pair[0] != pair[1])


def _changes(fun: Any, old: Signature, new: Signature) -> list[Change]:
    changes = []
    if new.tree is not old.tree:
        changes.append(_structure_change(fun, old, new))
    else:
        changes += _leaves_changes(fun, old, new)
    before_statics = {s.path: s for s in old.statics}
    for static in new.statics:
        before_static = before_statics.get(static.path)
        if before_static is not None and static != before_static:
            same = " (another object)" if static.text == before_static.text else ""
            changes.append(Change(static.path, "static_argument", before_static.text, static.text + same))
    before_options = dict(old.options)
    for option, value in new.options:
        if before_options.get(option) != value:
            changes.append(Change(option, "jit_options", str(before_options.get(option)), value))
    before_context, after_context = dict(old.context), dict(new.context)
    for setting in sorted(before_context.keys() | after_context.keys()):
        before, after = (
            each[setting] if setting in each else internals.context.usual_text(setting)
            for each in (before_context, after_context)
        )
        if before != after:
            changes.append(Change(setting, "context", before, after))
    return changes


def _leaves_changes(fun: Any, old: Signature, new: Signature) -> list[Change]:
    positions = [
        number for number, (a, b) in enumerate(zip(old.leaves, new.leaves, strict=True)) if a is not b and a != b
    ]
    # Many leaves change alike, and a text is dear.
    alike: dict[tuple[int, int], list[tuple[str, str, str]]] = {}
    changes = []
    for path, number in zip(signatures.paths(fun, new.tree, positions), positions, strict=True):
        before, after = old.leaves[number], new.leaves[number]
        key = (id(before), id(after))
        if key not in alike:
            alike[key] = _leaf_changes(before, after)
        changes += [Change(path, *change) for change in alike[key]]
    return changes


def _leaf_changes(old: Leaf, new: Leaf) -> list[tuple[str, str, str]]:
    """What differs, before and after."""
    what = [
        ("shape", old.shape != new.shape),
        ("dtype", old.dtype != new.dtype),
        ("weak_type", old.weak_type != new.weak_type),
    ]
    changes = [
        (kind, str(old), str(new)) for kind, differs in what if differs and (kind != "weak_type" or not what[1][1])
    ]
    if old.sharding != new.sharding:
        before, after = _devices(old.sharding), _devices(new.sharding)
        kind = "sharding" if before == after else "placement"
        changes.append((kind, _sharding_text(old.sharding), _sharding_text(new.sharding)))
    return changes


def _structure_change(fun: Any, old: Signature, new: Signature) -> Change:
    before, after = signatures.paths(fun, old.tree), signatures.paths(fun, new.tree)
    was, is_now = set(before), set(after)
    gone = [path for path in before if path not in is_now]
    come = [path for path in after if path not in was]
    path = (come or gone or [""])[0]
    if not gone and not come:
        return Change("", "structure", *_difference(str(old.tree), str(new.tree)))
    return Change(path, "structure", _some(gone) or "absent", _some(come) or "absent")


def _difference(before: str, after: str) -> tuple[str, str]:
    """Where two texts differ, each with a little of what stands before it."""
    before, after = " ".join(before.split()), " ".join(after.split())
    same = len(os.path.commonprefix([before, after]))
    tail = len(os.path.commonprefix([before[same:][::-1], after[same:][::-1]]))
    # What it is called stands before the value: `('deterministic', Static(value=False))`.
    cuts = [match.end() for match in re.finditer(r"[\s,(\[{]", before[:same]) if match.end() >= same - 60]
    start = max((cut for cut in cuts if cut <= same - 20), default=max(0, same - 60))

    def piece(text: str) -> str:
        end = re.compile(r"[\s,)\]}]|$").search(text, max(same, len(text) - tail))
        return signatures.shortened(text[start : end.start() if end else len(text)])

    return piece(before), piece(after)


def _some(paths: list[str]) -> str:
    return ", ".join(paths[:MOST_NAMED]) + (f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else "")


def _devices(sharding: Any) -> frozenset[Any] | None:
    return None if sharding is None else frozenset(sharding.device_set)


def _sharding_text(sharding: Any) -> str:
    if sharding is None:
        return "uncommitted"
    spec = getattr(sharding, "spec", None)
    if spec is not None:
        mesh = getattr(sharding.mesh, "shape", {})
        return f"P({', '.join(map(repr, spec))}) on {dict(mesh)}"
    return ", ".join(sorted(str(device) for device in list(sharding.device_set)[:8]))


def _listed(changes: tuple[Change, ...]) -> str:
    texts = list(dict.fromkeys(_told(each) for each in changes))
    more = [f"{len(texts) - MOST_NAMED} more differences"] if len(texts) > MOST_NAMED else []
    return "; ".join(texts[:MOST_NAMED] + more)


def _told(change: Change) -> str:
    if change.path:
        return f"`{change.path}` was {change.before}, is now {change.after}"
    return f"the metadata of its arguments changed from `{change.before}` to `{change.after}`"


def _same(known: Any, fun: Any) -> bool:
    """Whether JAX takes the two for one function: the same object, or equal ones such as two bound methods."""
    return known is fun or (known is not None and type(known) is type(fun) and equal(known, fun))


def _reference(fun: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(fun)
    except TypeError:
        return lambda: None


def identity(fun: Any, name: str) -> Hashable:
    """What stays the same when a function object is made again: its code, or a primitive and its parameters."""
    if getattr(fun, "_apply_primitive", False):
        return _primitive_identity(fun, name)
    code = getattr(unwrapped(fun), "__code__", None)
    return code if isinstance(code, types.CodeType) else name


def _primitive_identity(fun: Any, name: str) -> Hashable:
    try:
        variables = inspect.getclosurevars(fun).nonlocals
        params = variables.get("params", {})
        return (name, tuple(sorted((key, str(value)[:256]) for key, value in params.items())))
    except Exception:
        return name


def unwrapped(fun: Any) -> Any:
    """The user's function under partials, bound methods and wrappers that say what they wrap."""
    for _ in range(32):
        if isinstance(fun, functools.partial):
            fun = fun.func
        elif isinstance(fun, types.MethodType):
            inner = internals.user_function(fun)
            fun = fun.__func__ if inner is fun else inner
        elif getattr(fun, "__wrapped__", None) is not None:
            fun = fun.__wrapped__
        else:
            break
    return internals.user_function(fun)


def function_name(fun: Any) -> str | None:
    """`module.qualname` of the user's function; None where it has none."""
    fun = unwrapped(fun)
    qualname = getattr(fun, "__qualname__", None)
    if not isinstance(qualname, str):
        fun = type(fun)
        qualname = fun.__qualname__
    module = getattr(fun, "__module__", None)
    return f"{module}.{qualname}" if isinstance(module, str) and module else qualname
