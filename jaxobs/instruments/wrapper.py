"""`jit` and `instrument`: what a program calls to have its functions counted and timed."""

import functools
import threading
import types
from collections.abc import Callable
from typing import Any

from jaxobs import internals
from jaxobs.instruments.counted import CountedFunction, counted, unseen
from jaxobs.instruments.tracebacks import leave


class _Jitting(threading.local):
    """Whether `jit` has called `jax.jit` on this thread."""

    under_way = False


_jitting = _Jitting()


@unseen
def jit(fun: Callable[..., Any] | None = None, /, *, name: str | None = None, **jit_options: Any) -> Any:
    """`jax.jit` whose calls, errors and dispatch times are counted; a decorator with and without arguments.

        @jaxobs.jit
        def train_step(state, batch): ...

    It may be put in place of `jax.jit` itself: `jax.jit = jaxobs.jit`.

    Args:
      fun: what to compile; absent when used as `@jaxobs.jit(static_argnames="n")`.
      name: its label in metrics; `module.qualname` of `fun` when absent.
      **jit_options: every option of `jax.jit`, handed on unchanged.

    Returns:
      A callable like the one of `jax.jit`, with its `lower`, `trace`, `eval_shape` and `clear_cache`.

    Raises:
      Whatever `jax.jit` raises for these arguments.
    """
    if fun is None:
        return functools.partial(jit, name=name, **jit_options)
    import jax

    if _jitting.under_way:
        # What stands in place of `jax.jit` calls us: it asks for JAX's own, and who called it first counts.
        return internals.own_jit()(fun, **jit_options)
    _jitting.under_way = True
    try:
        jitted = (internals.own_jit() if jax.jit is jit else jax.jit)(fun, **jit_options)
    except BaseException as error:
        leave(error)
        raise
    finally:
        _jitting.under_way = False
    return jitted if isinstance(jitted, CountedFunction) else counted(jitted, fun, name)


def instrument(fun: Callable[..., Any], *, name: str | None = None) -> Any:
    """Counts the calls of something already compiled: `nnx.jit`, `eqx.filter_jit`, `jax.pmap`, an AOT `Compiled`.

        step = jaxobs.instrument(nnx.jit(step))

    What it returns is used as the callable itself, special methods and `isinstance` included. Of a class constructions
    are counted, and it can be derived from; to count the calls of its objects, instrument the object or a method.

    Args:
      fun: any callable; one that is instrumented already is returned as it is, unless a name is given.
      name: its label in metrics; `module.qualname` of what it wraps when absent.

    Raises:
      TypeError: `fun` cannot be called, or `name` is not a text.
    """
    if not callable(fun):
        raise TypeError(f"`instrument` needs a callable, but got {type(fun).__qualname__}: {fun!r:.80}.")
    if isinstance(fun, CountedFunction):
        return fun if name is None else counted(fun._jaxobs_fun, fun, name)
    if name is None and _counts(fun):
        return fun
    return counted(fun, fun, name)


def _counts(fun: Any) -> bool:
    """Whether a bound method or a `functools.partial` is one of an instrumented function: a call is counted once."""
    if type(fun) is types.MethodType:
        return isinstance(fun.__func__, CountedFunction)
    return type(fun) is functools.partial and isinstance(fun.func, CountedFunction)
