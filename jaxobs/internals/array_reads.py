"""Code of JAX's in which a host waits for an array: `float(x)`, `np.asarray(x)`, `jax.block_until_ready(x)` and so on.

`np.asarray(x)` of an array on the CPU leaves no frame, nor does the method `x.block_until_ready()` of newer versions.
"""

from __future__ import annotations

import os
from types import CodeType

_WAITS = {
    os.path.join("jax", "_src", *path.split("/")): frozenset(names)
    for path, *names in (
        ("array.py", "_value", "block_until_ready"), ("api.py", "block_until_ready", "device_get"),
        ("numpy/array_methods.py", "_item"),
    )
}  # fmt: skip


def waits_for_array(code: CodeType) -> bool:
    """Returns whether a thread whose innermost frame runs this waits for an array, or copies it to the host."""
    name = code.co_name
    return any(name in names and code.co_filename.endswith(file) for file, names in _WAITS.items())
