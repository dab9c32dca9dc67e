"""Why it compiled: the new signature against the nearest of those that the function was compiled for before.

A *program* is what JAX would compile once: one code object, or one primitive with its parameters, under one
transformation. For each program the history keeps signatures and function objects, bounded and by weak reference.
"""

from __future__ import annotations

import functools
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxobs import differences, internals, naming
from jaxobs.cures import cure
from jaxobs.facts import Change
from jaxobs.history import History, Program
from jaxobs.internals import Call
from jaxobs.signature import Signature

MOST_NAMED = 4
MOST_FORWARD = 256

_ORDER = (
    "new_function", "structure", "static_argument", "shape", "dtype", "weak_type", "jit_options", "context", "sharding",
    "placement", "layout",
)  # fmt: skip
"""Which cause is told where several alone would have forced it: the one that is nearest to what the user wrote."""

_UNDER = {
    "linearize": " under jax.grad, its forward pass",
    "transpose": " under jax.grad, its backward pass",
    "batch": " under jax.vmap",
}


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
        self._forward: OrderedDict[str, Explanation] = OrderedDict()
        """What was said of forward passes whose backward pass has not been compiled yet."""

    def explain(
        self,
        name: str,
        call: Call,
        signature: Signature | None,
        transform: str | None = None,
        *,
        phases: frozenset[str] = frozenset(),
    ) -> Explanation:
        """The cause of a miss of `call`, whose function is called `name` for people, and remembers the miss.

        Args:
          signature: of the call; None where the arguments were out of sight.
          transform: whose derived program was compiled, if any.
          phases: those that ran, which tell the class of the cause where the arguments cannot.
        """
        key = (naming.identity(call.fun, name), name, transform)
        program = self.history.program(key)
        signature = program.sharing(signature)
        known = program.knows(call.key)
        if not program.seen:
            explanation = self._first(name, transform)
        else:
            explanation = self._backward(name, transform) or _again(
                name, call, signature, transform, program, known, phases
            )
        if transform == "linearize":
            self._forward[name] = explanation
            if len(self._forward) > MOST_FORWARD:
                self._forward.popitem(last=False)
        program.objects += not known
        self.history.remember(key, _reference(call.key), signature)
        return explanation

    def _first(self, name: str, transform: str | None) -> Explanation:
        seen = " that jaxobs saw; it was installed when JAX was in use already" if self.late else ""
        return Explanation("first_call", f"First call of `{name}`{_UNDER.get(transform or '', '')}{seen}.")

    def _backward(self, name: str, transform: str | None) -> Explanation | None:
        """Of a backward pass: compiled with its forward pass, and for the same reason. Its own arguments say little."""
        forward = self._forward.pop(name, None) if transform == "transpose" else None
        if forward is None or forward.cause in ("first_call", "unknown"):
            return None
        return Explanation(
            forward.cause, f"The backward pass, like the forward pass: {forward.reason}", forward.changes
        )


def _again(
    name: str, call: Call, new: Signature | None, transform: str | None, program: Program, known: bool,
    phases: frozenset[str],
) -> Explanation:  # fmt: skip
    """Why a program was compiled that had been compiled before."""
    old, changes = None, tuple[Change, ...]()
    if new is not None:
        # What another object of the same code was compiled for is no excuse: JAX knows each for itself.
        earlier = (program.signatures(of=call.key) if known else []) or program.signatures()
        old = differences.nearest(new, earlier)
        changes = () if old is None else tuple(differences.changes(call.fun, old, new))
    compared_by_object = call.fun is not None and transform is None and not naming.is_primitive(call.fun)
    # JAX makes functions of its own anew where the arguments change: then these are the cause.
    of_jax = call.fun is not None and internals.is_jax_function(call.fun)
    if not known and compared_by_object and not (of_jax and changes):
        return _new_function(name, call, program, changes)
    if changes:
        cause = min((change.what for change in changes), key=_ORDER.index)
        return Explanation(cause, f"`{name}`: {_listed(changes)}. {cure(cause, changes)}", changes)
    if new is not None and old is not None and old.generation < new.generation:
        return _cleared(name, "JAX's caches were emptied since then")
    if not known and naming.is_control_flow(call.fun):
        reason = f"`{name}` was given a function that is a new object to JAX, which knows functions by identity"
        return Explanation("new_function", f"{reason}. {cure('new_function', ())}")
    if "trace" in phases and old is not None and not naming.is_primitive(call.fun):
        leaks = internals.context.leaks_are_checked()
        if leaks is not None:
            change = Change(leaks, "context", "False", "True")
            reason = f"`{name}` was compiled for these arguments before, but {leaks} is on: JAX keeps no trace then"
            return Explanation("context", f"{reason}. Turn it on for debugging only.", (change,))
        return _cleared(name, "JAX has forgotten it: `clear_cache()` was called, or a cache of JAX's is full")
    return Explanation("unknown", f"`{name}` compiled again, {_by_class(new is not None, phases)}.")


def _cleared(name: str, how: str) -> Explanation:
    reason = f"`{name}` was compiled for these arguments before; {how}"
    return Explanation("cache_cleared", f"{reason}. {cure('cache_cleared', ())}")


def _new_function(name: str, call: Call, program: Program, changes: tuple[Change, ...]) -> Explanation:
    where = naming.made_at(call.fun)
    code = f"the code at {where}" if where is not None else "the same code"
    what = "partial" if isinstance(call.fun, functools.partial) else "function"
    made = f"{what} object number {program.objects + 1} made from {code}"
    also = f"; with it, {_listed(changes)}" if changes else ""
    reason = f"`{name}` is a new function to JAX, which knows functions by identity: {made}{also}"
    return Explanation("new_function", f"{reason}. {cure('new_function', ())}", changes)


def _by_class(saw_arguments: bool, phases: frozenset[str]) -> str:
    what = "with arguments that look as before" if saw_arguments else "with its arguments out of sight"
    if "trace" in phases:
        return f"{what}; it was traced anew, so a signature, a config value or a context manager changed"
    if "lower" in phases:
        return f"{what}; it was lowered anew but not traced, so a sharding, a placement or a layout changed"
    return f"{what}; it was neither traced nor lowered anew, so the devices changed"


def _listed(changes: tuple[Change, ...]) -> str:
    texts = list(dict.fromkeys(_told(each) for each in changes))
    more = [f"{len(texts) - MOST_NAMED} more differences"] if len(texts) > MOST_NAMED else []
    return "; ".join(texts[:MOST_NAMED] + more)


def _told(change: Change) -> str:
    whose = f"`{change.path}`" if change.path else "what stands beside the arrays"
    return f"{whose} {change.before} -> {change.after}"


def _reference(fun: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(fun)
    except TypeError:
        return lambda: None
