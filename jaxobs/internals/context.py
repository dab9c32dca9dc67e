"""Context of a compilation besides the arguments: config values, context managers, caches that were emptied.

Like `internals` it knows names of JAX's insides, those of `jax._src.config` and `jax._src.util` from JAX 0.6.0 to
0.12.0, and does without what is gone.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable
from typing import Any

from jaxobs.base.guard import guarded
from jaxobs.internals import shardings

Context = tuple[tuple[str, str], ...]
"""Names and texts of the values that are not what they were at the first look, in the order of their names."""

MOST_TEXT = 1000
"""A longer text ends in a hash of the whole."""

# Names, without `jax_`, that some release includes in the keys of its tracing or dispatch caches: `include_in_jit_key`,
# `include_in_trace_context` and `trace_context()` in jax/_src/config.py. Where JAX lists them itself, its list is used.
_IN_KEYS = frozenset({
    "abstract_mesh_context_manager", "accurate_erf_inv", "allow_f16_reductions", "auto_pcast", "check_rep",
    "check_static_indices", "check_vma", "compute_on_context_manager", "custom_jvp3", "custom_vjp3",
    "debug_key_reuse", "default_device", "default_matmul_precision", "device_context", "disable_jit",
    "dynamic_shapes", "eager_constant_folding", "embedded_constants_max_bytes", "enable_pgle", "enable_x64",
    "error_checking_behavior_divide", "error_checking_behavior_nan", "error_checking_behavior_oob",
    "explicit_x64_dtypes", "high_dynamic_range_gumbel", "memory_fitting_level", "mesh_context_manager",
    "mutable_array_checks", "no_collectives", "no_execution", "numpy_dtype_promotion", "numpy_rank_promotion",
    "optimization_level", "pallas_enable_debug_checks", "pallas_tpu_interpret_mode_context_manager",
    "pgle_profiling_runs", "random_seed_offset", "remat3", "scan3", "softmax_custom_jvp",
    "threefry_gpu_kernel_lowering", "threefry_partitionable", "use_direct_linearize",
    "use_high_dynamic_range_gumbel", "use_hlo_logistic_lowering", "use_shardy_partitioner",
    "use_simplified_jaxpr_constants", "user_context", "varying_axes_in_types", "xla_metadata_context_manager",
    "xla_profile_version",
})  # fmt: skip
_PLAIN = {
    "mesh_context_manager": "with mesh",
    "abstract_mesh_context_manager": "mesh in use",
    "compute_on_context_manager": "compute_on",
    "xla_metadata_context_manager": "xla_metadata",
    "device_context": "mesh in use",
}

_UNTOLD = frozenset({"axis_env_state", "trace_state"})
"""Config values that follow from being inside a trace, and are not a setting of the user's."""


def _values() -> dict[str, Any]:
    """Value by name of what is part of a key, on this thread, now."""
    from jax._src import config

    listed = getattr(config, "trace_context_names", None)
    if callable(listed):
        pairs = list(zip(listed(), config.trace_context(), strict=False))
    else:
        pairs = [(name, holder.value) for name, holder in _holders()]
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name not in _UNTOLD:
            values.setdefault(_PLAIN.get(name, name), value)
    return values


@functools.cache
def _holders() -> list[tuple[str, Any]]:
    """Name and holder of each config value that is part of a key, for releases that do not list them."""
    from jax._src import config

    found = []
    for attribute, holder in vars(config).items():
        if isinstance(holder, type) or not hasattr(type(holder), "value"):
            continue
        name = str(getattr(holder, "_name", None) or getattr(holder, "name", None) or attribute)
        if name.removeprefix("jax_").lstrip("_") in _IN_KEYS:
            found.append((name, holder))
    return sorted(found)


@functools.cache
def _usual() -> dict[str, Any]:
    return _values()


def first_look() -> None:
    """Remembers the values of now as the usual ones. Wakes nothing."""
    with guarded("trace_context"):
        _usual()


def read() -> Context:
    """The values that differ from the first look, on this thread, now."""
    usual = _usual()
    others = [(name, value) for name, value in _values().items() if value is not usual.get(name)]
    return tuple(sorted((name, _text(value)) for name, value in others if value != usual.get(name)))


def usual_text(name: str) -> str:
    """The text of a value at the first look."""
    return _text(_usual().get(name))


def _text(value: Any) -> str:
    text = " ".join(shardings.text(value).split())
    if len(text) <= MOST_TEXT:
        return text
    return f"{text[:MOST_TEXT]}… ({hashlib.sha256(text.encode()).hexdigest()[:12]})"


@functools.cache
def _canary() -> Callable[[], int]:
    """A function in a cache of JAX's own: called again only after JAX has emptied its caches."""
    from jax._src import util

    times = 0

    def sing() -> int:
        nonlocal times
        times += 1
        return times

    cached: Callable[[], int] = util.cache(max_size=1, trace_context_in_key=False)(sing)
    return cached


def generation() -> int:
    """Grows by one each time that JAX's caches were emptied (`jax.clear_caches()`); 0 where that is out of sight."""
    try:
        return _canary()()
    except (ImportError, AttributeError, TypeError):
        return 0


def leaks_are_checked() -> str | None:
    """The option under which JAX keeps no traces, if it is on."""
    import jax

    return "jax_check_tracer_leaks" if getattr(jax.config, "jax_check_tracer_leaks", False) else None


def tree_util() -> Any:
    """The module `jax.tree_util`; None until the program has imported JAX."""
    return sys.modules.get("jax.tree_util")


MOST_OPTIONS = 400
MOST_OPTION_TEXT = 200


def options() -> dict[str, str]:
    """Value by name, as set for the whole process; nothing where this JAX does not list them."""
    config = getattr(sys.modules.get("jax._src.config"), "config", None)
    values = getattr(config, "values", None)
    if not isinstance(values, dict):
        return {}
    plain = {
        name: value for name, value in values.items() if value is None or isinstance(value, bool | int | float | str)
    }
    return {name: str(plain[name])[:MOST_OPTION_TEXT] for name in sorted(plain)[:MOST_OPTIONS]}
