"""JAX's pytrees, for who must not import JAX for it."""

from __future__ import annotations

import sys
from typing import Any


def tree_util() -> Any:
    """The module `jax.tree_util`; None until the program has imported JAX."""
    return sys.modules.get("jax.tree_util")
