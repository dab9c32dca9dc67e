"""A capture of a real program, read by `jaxobs.profiles`: its steps, and why the device was idle."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxobs
from jaxobs.profiles import reading

PAUSE = 0.02


def batches() -> Iterator[np.ndarray]:
    while True:
        time.sleep(PAUSE)
        yield np.ones((100, 100), np.float32)


def saved() -> None:
    with jaxobs.phase("checkpoint"):
        time.sleep(PAUSE)


@pytest.mark.parametrize("reason", ["input", "checkpoint", "dispatch"])
def test_the_account_of_time_names_the_reason(fresh: None, reason: str, tmp_path: Path) -> None:
    """Captures have no Python calls: what the program waited for is recorded beside the trace."""
    jaxobs.install(capture_signal="off", capture_directory=str(tmp_path), capture_interval=0)
    waits = iter(jaxobs.data(batches()))
    between: dict[str, Callable[[], object]] = {
        "input": lambda: next(waits), "checkpoint": saved, "dispatch": lambda: time.sleep(PAUSE),
    }  # fmt: skip
    step = jax.jit(lambda x: jnp.tanh(x @ x))
    x = jax.block_until_ready(jnp.ones((100, 100)))
    jax.block_until_ready(step(x))
    capture = None
    for number in range(200):
        if number == 2:
            capture = jaxobs.capture("profile", steps=5)
        between[reason]()
        with jaxobs.step("train"):
            jax.block_until_ready(step(x))
        if capture is not None and capture.result is not None:
            break
    assert capture is not None
    assert capture.wait(120).path is not None, capture
    profile = reading.read(str(capture.path)).profile
    assert profile.idle[0].reason == reason
    assert profile.steps is not None and profile.steps >= 3
