"""The names of the functions that JAX's hook after a call is called with."""

import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

from jaxobs import internals
from jaxobs.facts.compilations import EAGER
from jaxobs.internals import Miss, post_hook
from jaxobs.internals.source_files import is_jax, is_own
from jaxobs.reasons import naming
from jaxobs.state.call_stats import CallStats, label

EAGER_LOOPS = {"scan": "jax.lax.scan", "while": "jax.lax.while_loop"}
"""Operations that a program may call outside any jitted function, step by step."""


T = TypeVar("T")


class ByFunction(dict[int, T]):
    """Values by the number of an object that `jax.jit` returned, each kept as long as its object lives."""

    def __init__(self) -> None:
        super().__init__()
        self._references: dict[int, weakref.ref[Any]] = {}

    def keep(self, fun: Any, known: T) -> T:
        """Keeps something about an object until the object is gone; returns it."""
        number, references = id(fun), self._references

        def gone(_: object) -> None:
            self.pop(number, None)
            references.pop(number, None)

        references[number] = weakref.ref(fun, gone)
        self[number] = known
        return known


def name(fun: Any, args: Any, kwargs: Any, above: FrameType, name_of: Callable[[CallStats], str | None]) -> str | None:
    """Returns the label of the user's function that JAX called.

    Args:
      above: the frame above the hook's.
      name_of: names the function of a wrapper of jaxobs.

    Returns:
      `EAGER` for a function of JAX; None for a function without a name, and for a program compiled ahead of time.
    """
    inner = post_hook.function_of(fun)
    caller = post_hook.caller(above)
    while inner is None and is_jax(caller.f_code.co_filename) and caller.f_back is not None:
        caller = caller.f_back  # a program compiled ahead of time is called by a method in Python
    stats = caller.f_locals.get("stats") if is_own(caller.f_code.co_filename) else None
    if isinstance(stats, CallStats):
        return name_of(stats)
    if inner is None or naming.is_primitive(inner):
        return None if inner is None else EAGER_LOOPS.get(getattr(inner, "__name__", ""), EAGER)
    user = internals.called(Miss(fun=inner, args=tuple(args), kwargs=dict(kwargs or {}))).fun
    if internals.is_jax_function(naming.unwrapped(user)):
        return EAGER
    found = naming.function_name(user)
    return None if found is None else label(found)
