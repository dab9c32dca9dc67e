"""Owner of the trace that `jax.profiler` is running: JAX runs one at a time, for the whole process."""

from __future__ import annotations

import sys
from typing import Any

_FIELDS = ("session", "profile_session")
"""Attributes in which JAX keeps the trace: from 0.12, and before."""


def running_trace() -> Any:
    """The session of the trace that is running; None if none is, or JAX has moved it out of sight."""
    state = _state()
    return next((found for name in _FIELDS if (found := getattr(state, name, None)) is not None), None)


def forget_trace(session: Any) -> None:
    """Lets JAX start another trace after this one could not be written, in which case it thinks it is running still."""
    state = _state()
    if session is None or state is None:
        return
    with state.lock:
        if running_trace() is session:
            state.reset()


def _state() -> Any:
    return getattr(sys.modules.get("jax._src.profiler"), "_profile_state", None)
