"""Functions that a pickle can find by name, for the tests of the wrapper."""

from __future__ import annotations

from typing import Any

import jax

import jaxobs


def double(x: Any) -> Any:
    """Twice `x`."""
    return x * 2


def plain(x: Any) -> Any:
    """Twice `x`; known here by its instrumented self only."""
    return x * 2


plain = jaxobs.instrument(plain)


@jaxobs.jit
def decorated(x: Any) -> Any:
    """Twice `x`; known here by its jitted self only."""
    return x * 2


@jax.jit
def bare(x: Any) -> Any:
    """Twice `x`; known here by its jitted self only."""
    return x * 2
