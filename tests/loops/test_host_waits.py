"""Waits of the host for its devices: the stacks of real reads, and what they amount to."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from jaxobs.loops import call_places
from jaxobs.loops.host_waits import FEWEST_LOOKS, HostWaits


def _stack(of: Callable[[], Any]) -> call_places.Place:
    thread = threading.Thread(target=of, daemon=True)
    thread.start()
    last, here = (), ()
    while thread.is_alive() and not (here and call_places.same(here, last)):
        time.sleep(0.05)
        last, here = here, call_places.place(sys._current_frames()[thread.ident or 0])
    thread.join()
    return here


@jax.jit
def _slow(x: Any) -> Any:
    return jax.lax.fori_loop(0, 1_500, lambda _, y: jnp.tanh(y @ y), jnp.full((200, 200), x)).sum()


@pytest.mark.parametrize(
    "read",
    [float, jax.device_get, jax.block_until_ready, lambda x: f"{x}", lambda x: x.item(), bool],
    ids=["float", "device_get", "block_until_ready", "format", "item", "bool"],
)
def test_a_read_is_known_by_its_stack(read: Callable[[Any], Any]) -> None:
    """With the line that reads."""
    result = _slow(jnp.float32(1.0))
    here, waits = _stack(lambda: read(result)), HostWaits()
    for _ in range(FEWEST_LOOKS):
        waits.look("loop", here)
    found = waits.of("loop")
    assert found is not None and (found.share, found.idle_share) == (1.0, 0.0)
    assert found.where.startswith(f"{__file__}:")


def test_what_computes_does_not_wait() -> None:
    """Nor what sleeps; and few looks tell nothing."""
    waits = HostWaits()
    idle = _stack(lambda: time.sleep(0.3))
    result = _slow(jnp.float32(1.0))
    waiting = _stack(lambda: float(result))
    for number in range(FEWEST_LOOKS):
        assert waits.of("loop") is None
        waits.look("loop", waiting if number % 4 == 0 else idle)
    found = waits.of("loop")
    assert found is not None and (found.share, found.idle_share) == (0.25, 0.25)
    for _ in range(FEWEST_LOOKS):
        waits.look("other", idle)
    assert waits.of("other") is None
