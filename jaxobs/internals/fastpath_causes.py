"""Why a call fell out of JAX's fast path, read from the frame of its Python dispatch.

Two ways lead there. JAX gives C++ no data for the fast path: the conditions are those of `_get_fastpath_data`. Or it
does, but C++ did not use what it has: it cannot hash an argument, has no entry for these, or has one that is marked.
"""

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from jaxobs.base import threads
from jaxobs.internals.fastpath import MONITORS, Fall, executables_made
from jaxobs.internals.tracing import trace_state

Why = tuple[str, str]
"""Returns a name from `facts.functions.FASTPATH_CAUSES`, and a sentence for a person."""

_MOST_NAMES = 3
_MOST_NAME = 80

_lock = threads.RLock()
_known: WeakKeyDictionary[Any, Why | None] = WeakKeyDictionary()
"""Executables that an earlier fall used, and what about each of them rules the fast path out for good."""
_entries: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
"""Entries in the C++ cache of a function that falls account for."""


def reset_lock() -> None:
    """A fresh lock, for a forked child."""
    global _lock
    _lock = threads.RLock()


def forget_new_entries(program: Any) -> None:
    """Takes the entries that C++ has of the program as known: at first, and after a call that raised."""
    with _lock:
        _entries[program] = program._cache_size()


def why(fall: Fall, stuck_before: bool) -> Why | None:
    """Returns why a `fall` left the fast path; None if it compiled, or was traced or transformed."""
    local = fall.frame.f_locals
    executable = local.get("executable")
    with _lock:
        is_new = executable is None or executable not in _known
        if is_new and executable is not None:
            _known[executable] = _effects(executable, local["jaxpr"])
        lasting = None if executable is None else _known[executable]
    inserted = _inserted(fall.program)
    # Where the count is one of the whole process: of a new executable what was made meanwhile could be this one.
    brought = (is_new or MONITORS) and executables_made() != fall.made
    if brought or "maybe_fastpath_data" not in local or not _runs():
        return None
    if local["maybe_fastpath_data"] is None:
        return lasting or _no_data(local)
    return _not_used(local, inserted, stuck_before)


def _runs() -> bool:
    state = _trace_state()
    return state.current(state.holder) is state.eval_trace


_trace_state = functools.cache(trace_state)


def _inserted(program: Any) -> bool:
    """Returns whether the call added an entry to the C++ cache, by the entries that no fall has accounted for."""
    size: int = program._cache_size()
    with _lock:
        accounted = _entries.get(program, 0)
        if size > accounted:
            # One for each: another thread's may be on its way. Where falls go unseen, theirs are no news either.
            _entries[program] = accounted + 1 if MONITORS else size
            return True
        _entries[program] = size
        return size < accounted


# -------------------------------------------------------------------------------------------- no data for the fast path


def _effects(executable: Any, jaxpr: Any) -> Why | None:
    """Returns the effect of a program because of which JAX has no fast path for it."""
    import jax._src.pjit as pjit

    call = getattr(executable, "unsafe_call", None)
    effects = {type(each) for each in getattr(jaxpr, "effects", ())}
    if getattr(call, "ordered_effects", None) or getattr(call, "has_unordered_effects", False):
        return "effects", _calls_back(_names(effects))
    if getattr(call, "has_host_callbacks", False):
        return "effects", _calls_back("pure_callback")
    if any(issubclass(each, getattr(pjit, "RefEffect", ())) for each in effects):
        return "effects", f"It reads or writes a Ref ({_names(effects)}), which JAX dispatches from Python."
    return None


def _calls_back(effects: str) -> str:
    return (
        f"The program calls back to the host ({effects}), as with `jax.debug.print` and `io_callback`, and such "
        "programs are dispatched from Python. Take that out of the hot function, or call a copy with it every N steps."
    )


def _no_data(local: Mapping[str, Any]) -> Why:
    from jax._src import config

    executable, jaxpr = local["executable"], local["jaxpr"]
    profiler = local["pgle_profiler"]
    if profiler is not None and profiler.is_enabled() and not profiler.is_fdo_consumed():
        return _configured("jax_enable_pgle")
    if _is_on(config, "no_execution"):
        return _configured("jax_no_execution")
    if executable is None:
        if _is_on(config, "debug_key_reuse"):
            return _configured("jax_debug_key_reuse")
        if getattr(jaxpr, "is_high", getattr(getattr(jaxpr, "jaxpr", None), "is_high", False)):
            return "arguments", "Its arguments or results are of high-level types, which JAX dispatches from Python."
        return "unknown", "JAX ran it without its own executable."
    strange = _strange_outputs(local["out_flat"])
    if strange:
        return "outputs", f"It returns {strange}, and the fast path only supports plain arrays."
    return "unknown", f"JAX's C++ dispatch received nothing for the executable ({_name(type(executable))})."


def _is_on(config: Any, option: str) -> bool:
    return bool(getattr(getattr(config, option, None), "value", False))


def _configured(option: str) -> Why:
    return (
        "configuration",
        f"`{option}` is set, and JAX has no fast path with it. Unset it when you are done debugging.",
    )


def _strange_outputs(outputs: Iterable[Any]) -> str:
    from jax._src.lib import xla_client

    plain = xla_client.ArrayImpl
    leaves = [leaf for each in outputs for leaf in _dispatched(each)]
    return _names({type(leaf) for leaf in leaves if not isinstance(leaf, plain)})


# ------------------------------------------------------------------------------------ data that C++ did not find or use


def _not_used(local: Mapping[str, Any], inserted: bool, stuck_before: bool) -> Why:
    strange = _strange_arguments(local["args_flat"])
    if strange:
        return "arguments", (
            f"The fast path accepts no argument of type {strange}. "
            "Pass arrays: convert once with `jnp.asarray`, outside the hot loop."
        )
    full = _full_cache(local.get("jit_info"))
    if full:
        return "cache_full", (
            f"All {full:,} entries of JAX's dispatch cache are in use, so entries are evicted and recreated. "
            "Call fewer functions with fewer kinds of arguments, or `jax.clear_caches()` between parts of a program."
        )
    if inserted:
        return "new_signature", (
            "Nothing compiled, but the call was new to the fast path, which distinguishes more than "
            "the compiler: NumPy arrays, numbers, JAX arrays, committed ones, contexts. The next "
            "such call is fast."
        )
    if stuck_before:
        return "stuck_entry", (
            "The first call with these arguments raised, or ran without a fast path, and that keeps "
            "all others off it. Call the function's `clear_cache()` once, at the price of "
            "recompiling."
        )
    return "unknown", "JAX has what the fast path needs, but its C++ dispatch did not use it."


def _strange_arguments(leaves: Iterable[Any]) -> str:
    """Types among the arguments of which C++ cannot take a signature."""
    one_of_each = {type(leaf): leaf for leaf in leaves}
    return _names(
        kind for kind, leaf in one_of_each.items() if not all(_has_signature(each) for each in _dispatched(leaf))
    )


def _has_signature(leaf: Any) -> bool:
    try:
        from jax._src.lib import jax_jit

        signature = jax_jit._ArgSignatureOfValue
    except (ImportError, AttributeError):
        return True
    try:
        signature(leaf, False)
    except Exception:
        # A donated array is gone by now; it was one.
        return hasattr(leaf, "is_deleted") and bool(leaf.is_deleted())
    return True


def _dispatched(value: Any) -> list[Any]:
    """The leaves that C++ sees in what is a leaf to everybody else: a typed key is its data."""
    from jax._src import tree_util

    registry = getattr(tree_util, "dispatch_registry", None)
    return [value] if registry is None else list(registry.flatten(value)[0])


def _full_cache(jit_info: Any) -> int:
    """How many entries the dispatch cache of such a function holds, if there is room for no more; else 0."""
    import jax._src.interpreters.pxla as pxla
    import jax._src.pjit as pjit

    kind = pxla.JitGlobalCppCacheKeys
    options = {each.name: getattr(jit_info, each.name, None) for each in dataclasses.fields(kind)}
    cache = pjit._get_cpp_global_cache(kind(**options).contains_explicit_attributes)
    capacity: int = cache.capacity()
    return capacity if cache.size() >= capacity else 0


def _names(kinds: Iterable[type]) -> str:
    names = sorted({_name(kind) for kind in kinds})
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _name(kind: type) -> str:
    module = kind.__module__.partition(".")[0]
    name = kind.__qualname__ if module in ("builtins", "jax", "jaxlib") else f"{kind.__module__}.{kind.__qualname__}"
    return name[:_MOST_NAME]
