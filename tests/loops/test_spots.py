"""Spots: the stacks of real reads, and what they say."""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from jaxobs.loops.spots import MOST_SPOTS, Spot, Spots, awaited


def _stack(of: Callable[[], Any], spots: Spots) -> tuple[Spot, Any]:
    """Returns where a thread stays longest, and the array that it waits for there."""
    thread = threading.Thread(target=of, daemon=True)
    thread.start()
    last: Spot | None = None
    array = None
    while thread.is_alive():
        time.sleep(0.05)
        frame = sys._current_frames().get(thread.ident or 0)
        if frame is None:
            continue
        here, found = spots.of(frame), awaited(frame)
        del frame
        if here is last:
            array = found
            break
        last = here
    thread.join()
    assert last is not None
    return last, array


@jax.jit
def _slow(x: Any) -> Any:
    return jax.lax.fori_loop(0, 1_500, lambda _, y: jnp.tanh(y @ y), jnp.full((200, 200), x)).sum()


@pytest.mark.parametrize(
    ("read", "waits"),
    [
        (float, False), (jax.device_get, False), (lambda x: f"{x}", False), (lambda x: x.item(), False), (bool, False),
        (jax.block_until_ready, True), (lambda x: x.block_until_ready(), True),
    ],
    ids=["float", "device_get", "format", "item", "bool", "block_until_ready", "the method"],
)  # fmt: skip
def test_a_read_is_known_by_its_stack(read: Callable[[Any], Any], waits: bool) -> None:
    """With the line that reads, and the array, unless it only waits for that."""
    result = _slow(jnp.float32(1.0))
    spot, array = _stack(lambda: read(result), Spots())
    assert spot.reads and spot.waits == waits
    assert spot.line.startswith(f"{__file__}:")
    assert waits or array is result


def test_what_sleeps_does_not_read() -> None:
    spot, array = _stack(lambda: time.sleep(0.3), Spots())
    assert not (spot.reads or spot.waits or spot.in_jax) and array is None
    assert spot.line.startswith(f"{__file__}:")


def test_python_itself_has_no_line() -> None:
    """As at the end of the program, where it waits for its threads."""
    spot, _ = _stack(functools.partial(threading.Event().wait, 0.3), Spots())
    assert spot.place and not spot.line


def test_a_stack_is_read_once_and_no_more_are_kept_than_there_is_room_for() -> None:
    spots = Spots()
    found = [spots.of(sys._getframe(0)) for _ in range(3)]
    assert found[0] is found[1] is found[2]
    code = "def here(): return frame()"
    for _ in range(MOST_SPOTS + 10):
        namespace: dict[str, Any] = {"frame": lambda: sys._getframe(1)}
        exec(code, namespace)
        spots.of(namespace["here"]())
    assert len(spots._known) <= MOST_SPOTS
