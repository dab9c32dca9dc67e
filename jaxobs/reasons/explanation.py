"""Why it compiled: the new signature against the nearest of those that the function was compiled for before.

A *program* is what JAX would compile once: one code object, or one primitive with its parameters, under one
transformation. For each program the history keeps signatures and function objects, bounded and by weak reference.
"""

import functools
import os
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jaxobs import internals
from jaxobs.facts.compilations import Change
from jaxobs.internals import Call
from jaxobs.reasons import cures, differences, naming
from jaxobs.reasons.cures import cure, operation_cure
from jaxobs.reasons.history import History, Program
from jaxobs.reasons.signature import Signature, equal

MOST_NAMED = 4
MOST_FORWARD = 256

_ORDER = (
    "new_function", "structure", "static_argument", "shape", "dtype", "weak_type", "jit_options", "context", "sharding",
    "placement", "layout",
)  # fmt: skip
"""Which cause is reported if each of several would have forced it: the one nearest to what the user wrote."""

_UNDER = {
    "linearize": " under jax.grad (forward pass)",
    "transpose": " under jax.grad (backward pass)",
    "batch": " under jax.vmap",
}


@dataclass(frozen=True, slots=True)
class Explanation:
    cause: str
    reason: str
    changes: tuple[Change, ...] = ()
    by_rerun: bool = False
    """As in `Compilation`."""


class Explainer:
    """Remembers what was compiled, and says of each new miss what differs. Not thread-safe: its owner locks."""

    def __init__(self, history: History | None = None) -> None:
        self.history = History() if history is None else history
        self.late = False
        """Whether JAX was in use before anybody looked: then the first miss seen may not have been the first."""
        self._forward: OrderedDict[str, Explanation] = OrderedDict()
        """Explanations of forward passes whose backward pass has not been compiled yet."""

    def explain(
        self,
        name: str,
        call: Call,
        signature: Signature | None,
        transform: str | None = None,
        *,
        phases: frozenset[str] = frozenset(),
        lines: tuple[str, ...] = (),
        serving: bool = False,
        cell: int | None = None,
    ) -> Explanation:
        """Returns the cause of a miss of `call`, whose function is called `name` for people, and remembers the miss.

        Args:
          signature: of the call; None where the arguments were out of sight.
          transform: whose derived program was compiled, if any.
          phases: those that ran, which report the class of the cause where the arguments cannot.
          lines: those that called it, the innermost first and the user's last, for an operation outside any jitted
            function. Inside a library calls from other lines say nothing of why this one compiled, unless their
            signature is the same.
          serving: whether it was called for a request.
          cell: the run of a notebook's cell that this belongs to; None outside of notebooks.
        """
        key = (naming.identity(call.fun, name), name, transform)
        program = self.history.program(key)
        given, signature = signature, program.sharing(signature)
        known = program.knows(call.key)
        if not program.seen:
            explanation = self._first(name, transform)
        else:
            explanation = self._backward(name, transform) or (
                _first_here(name, lines)
                if len(lines) > 1 and _is_new_here(program, lines, signature)
                else _again(name, call, signature, transform, program, known, phases, lines, serving, cell, given)
            )
        if transform == "linearize":
            self._forward[name] = explanation
            if len(self._forward) > MOST_FORWARD:
                self._forward.popitem(last=False)
        program.objects += not known
        program.cell = program.cell if known else cell
        self.history.remember(key, _reference(call.key), signature, lines)
        return explanation

    def _first(self, name: str, transform: str | None) -> Explanation:
        seen = " that jaxobs saw; it was installed after JAX had been in use" if self.late else ""
        return Explanation("first_call", f"First call of `{name}`{_UNDER.get(transform or '', '')}{seen}.")

    def _backward(self, name: str, transform: str | None) -> Explanation | None:
        """Explains a backward pass: compiled with its forward pass, for the same reason."""
        forward = self._forward.pop(name, None) if transform == "transpose" else None
        if forward is None or forward.cause in ("first_call", "unknown"):
            return None
        return Explanation(
            forward.cause, (
                f"The backward pass compiled for the same reason as the forward pass: {forward.reason}"
            ), forward.changes,
            forward.by_rerun,
        )  # fmt: skip


def _is_new_here(program: Program, lines: tuple[str, ...], signature: Signature | None) -> bool:
    """Returns whether an operation is new at this line, and was compiled elsewhere for other arguments."""
    if signature is None or any(each.lines == lines for each in program.seen):
        return False
    return not any(equal(each, signature) for each in program.signatures())


def _first_here(name: str, lines: tuple[str, ...]) -> Explanation:
    place = os.path.basename(lines[0]) if os.path.isabs(lines[0]) else lines[0]
    where = f", at {place}" if place else ""
    return Explanation("first_call", f"First call of `{name}` with these arguments{where}.")


def _again(
    name: str, call: Call, new: Signature | None, transform: str | None, program: Program, known: bool,
    phases: frozenset[str], lines: tuple[str, ...] = (), serving: bool = False,
    cell: int | None = None, given: Signature | None = None,
) -> Explanation:  # fmt: skip
    """Returns why a program was compiled that had been compiled before."""
    old, changes = None, tuple[Change, ...]()
    if new is not None:
        # What another object of the same code was compiled for is no excuse: JAX knows each for itself.
        earlier = (program.signatures(of=call.key) if known else []) or program.signatures()
        if lines and not any(equal(each, new) for each in earlier):
            earlier = program.signatures_at(lines) or earlier
        old = differences.nearest(new, earlier)
        changes = () if old is None else tuple(differences.changes(call.fun, old, new))
    compared_by_object = call.fun is not None and transform is None and not naming.is_primitive(call.fun)
    # JAX creates functions of its own again when the arguments change: then these are the cause.
    of_jax = call.fun is not None and internals.is_jax_function(call.fun)
    if not known and compared_by_object and not (of_jax and changes):
        return _new_function(name, call, program, changes, by_rerun=cell is not None and cell != program.cell)
    if not changes and old is not None and new is not None and old.generation == new.generation:
        changes = tuple(differences.doubtful(call.fun, old, given or new))
    if changes:
        cause = min((change.what for change in changes), key=_ORDER.index)
        advice = (
            operation_cure(cause, changes, varies=len(lines) == 1 and bool(program.signatures_at(lines)))
            if lines
            else cure(cause, changes, earlier=len(program.seen), owner=naming.owner(call.fun), serving=serving)
        )
        return Explanation(cause, f"`{name}`: {_listed(changes)}. {advice}", changes)
    if new is not None and old is not None and old.generation < new.generation:
        return _cleared(name, "JAX's caches have been cleared since")
    if not known and naming.is_control_flow(call.fun):
        reason = f"`{name}` received a function that is a new object to JAX, which identifies functions by object"
        return Explanation("new_function", f"{reason}. {cure('new_function', ())}")
    if "trace" in phases and old is not None and not naming.is_primitive(call.fun):
        leaks = internals.context.leaks_are_checked()
        if leaks is not None:
            change = Change(leaks, "context", "False", "True")
            reason = f"`{name}` was compiled for these arguments before, but {leaks} is on, so JAX keeps no traces"
            return Explanation("context", f"{reason}. Turn it on for debugging only.", (change,))
        return _cleared(name, "JAX has dropped it since: `clear_cache()` was called, or one of JAX's caches is full")
    return Explanation("unknown", f"`{name}` recompiled {_by_class(new is not None, phases)}.")


def returned_longer(name: str, why: Explanation, paths: Sequence[str]) -> Explanation:
    """Returns the explanation for arguments that the function itself returned, longer than it took them."""
    return replace(why, reason=f"`{name}`: {_listed(why.changes)}. {cures.returned_longer(paths)}")


def _cleared(name: str, how: str) -> Explanation:
    reason = f"`{name}` was compiled for these arguments before; {how}"
    return Explanation("cache_cleared", f"{reason}. {cure('cache_cleared', ())}")


def _new_function(
    name: str, call: Call, program: Program, changes: tuple[Change, ...], *, by_rerun: bool
) -> Explanation:
    where = naming.made_at(call.fun)
    code = f"the code at {where}" if where is not None else "the same code"
    what = "partial" if isinstance(call.fun, functools.partial) else "function"
    made = f"{what} object number {program.objects + 1} created from {code}"
    also = f"; also, {_listed(changes)}" if changes else ""
    reason = f"`{name}` is a new function to JAX, which identifies functions by object: it is {made}{also}"
    owner = naming.owner(call.fun)
    advice = cure("new_function", (), owner=owner)
    if by_rerun and owner is None:
        advice = "Rerunning a cell creates its functions again: define them in a cell that you do not rerun."
    if cures.is_trial(name):
        advice = f"{owner} compiles each candidate to measure it: save its choice, and load that at the next start."
    return Explanation("new_function", f"{reason}. {advice}", changes, by_rerun)


def _by_class(saw_arguments: bool, phases: frozenset[str]) -> str:
    what = "with arguments that look the same" if saw_arguments else "with arguments that jaxobs could not see"
    if "trace" in phases:
        return f"{what}; it was retraced, so a signature, a config value or a context manager changed"
    if "lower" in phases and saw_arguments:
        return (
            f"{what}; it was lowered again but not retraced, and jaxobs sees no difference in what it was lowered for"
        )
    if "lower" in phases:
        return f"{what}; it was lowered again but not retraced, so a sharding, a placement or a layout changed"
    return f"{what}; it was neither retraced nor lowered again, so the devices changed"


def _listed(changes: tuple[Change, ...]) -> str:
    texts = list(dict.fromkeys(_told(each) for each in changes))
    more = [f"{len(texts) - MOST_NAMED} more differences"] if len(texts) > MOST_NAMED else []
    return "; ".join(texts[:MOST_NAMED] + more)


def _told(change: Change) -> str:
    whose = f"`{change.path}`" if change.path else "the static part"
    return f"{whose} {change.before} -> {change.after}"


def _reference(fun: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(fun)
    except TypeError:
        return lambda: None
