"""Context that decides what a function is lowered to: the mesh in use and config values, read and put in force.

Names of JAX's insides, from JAX 0.6.0 to 0.12.0: `get_concrete_mesh` and `thread_resources` of `jax._src.mesh`, the
holders of `jax._src.config`, each of which is a context manager for the thread.
"""

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

OPTIONS = (
    "jax_default_matmul_precision", "jax_default_prng_impl", "jax_enable_x64", "jax_memory_fitting_level",
    "jax_numpy_dtype_promotion", "jax_numpy_rank_promotion", "jax_optimization_level", "jax_threefry_partitionable",
    "jax_use_shardy_partitioner",
)  # fmt: skip
"""Options that change what a function is lowered or compiled to, and that people set."""


def options() -> dict[str, bool | str | None]:
    """The `OPTIONS` on this thread, now; without those that this JAX does not have."""
    import jax

    found = {}
    for name in OPTIONS:
        value = getattr(jax.config, name, _ABSENT)
        value = getattr(value, "value", value)  # an enumeration's
        if value is None or isinstance(value, bool | str):
            found[name] = value
    return found


_ABSENT: Any = object()


def mesh_in_use() -> tuple[str, Any] | None:
    """How the mesh in use was entered, `set_mesh` or `with`, and the mesh; None where there is none."""
    try:
        from jax._src import mesh

        # An empty one stands for none.
        found = mesh.get_concrete_mesh()
        if found is not None and not found.empty:
            return "set_mesh", found
        entered = mesh.thread_resources.env.physical_mesh
    except (ImportError, AttributeError):
        return None
    return None if entered.empty else ("with", entered)


def default_device() -> Any:
    """The device of `jax.default_device`, if one is set."""
    import jax

    return jax.config.jax_default_device


@contextlib.contextmanager
def scope(wanted: Mapping[str, Any], mesh: tuple[str, Any] | None = None, device: Any = None) -> Iterator[None]:
    """Puts options, a mesh and a default device in force here; raises `AttributeError` if this JAX lacks one."""
    import jax
    from jax._src import config

    now = options()
    with contextlib.ExitStack() as stack:
        for name, value in wanted.items():
            if name in now and now[name] != value:
                stack.enter_context(getattr(config, name.removeprefix("jax_"))(value))
        if device is not None and device is not default_device():
            stack.enter_context(jax.default_device(device))
        if mesh is not None and mesh_in_use() != mesh:
            how, entered = mesh
            set_mesh = getattr(jax, "set_mesh", None) or getattr(jax.sharding, "use_mesh")  # noqa: B009
            with warnings.catch_warnings():  # newer releases advise against `with mesh:`, which is not our choice
                warnings.simplefilter("ignore", DeprecationWarning)
                stack.enter_context(set_mesh(entered) if how == "set_mesh" else entered)
        yield
