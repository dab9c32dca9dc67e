"""The faults: what injects each, and the truth about it."""

import errno
import os
import threading
import time
import tomllib
from importlib import resources
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxobs.instruments.requests import request
from jaxobs.ops.gameday.fault_types import Fault, Scene

TYPES = (int, float, np.float32, np.int32, np.float16, np.int8, np.uint8, np.int16, np.uint16, np.uint32, bool)
"""Python's own are weak types for JAX, NumPy's are not: each is a program of its own."""
SIZES = (1, 3, 8, 20, 55, 150, 400, 1100)
"""Far enough apart that the sizes themselves are not a fault: nobody compiled for them before the traffic came."""
EVERY = 40
"""Requests from one new size to the next."""
INPUT_SECONDS = 0.5


def _array_leak(scene: Scene) -> None:
    """Each batch stays on the device, in a list."""
    scene.kept.append(jax.device_put(scene.images))


def _bad_record(scene: Scene) -> None:
    """Makes one pixel of one image in each batch NaN."""
    scene.images = np.array(scene.images)
    scene.images[scene.random.randrange(len(scene.images)), 3, 4] = np.nan


def _changing_shapes(scene: Scene) -> None:
    """The batch gets another size each time."""
    size = scene.random.randrange(20, len(scene.labels))
    scene.images, scene.labels = scene.images[:size], scene.labels[:size]


def _changing_types(scene: Scene) -> None:
    """The learning rate comes as another type in each step, with the same value."""
    scene.rate = TYPES[scene.count % len(TYPES)](1)


def _cold_requests(scene: Scene) -> None:
    """A request in each step, now and then of a size that nobody has asked for."""
    from jaxobs.ops.demo import training

    size = SIZES[min(scene.count // EVERY, len(SIZES) - 1)]
    images = np.resize(scene.images, (size, 8, 8, 1))
    with request("/classify"):
        np.asarray(training.predict(scene.model, images))
        np.asarray(training.saliency(scene.model, images))


def _crash(scene: Scene) -> None:
    """A record with a label that does not exist."""
    raise ValueError(f"label 17 of record {scene.random.randrange(10_000)} is out of range for 10 classes")


def _disk_full(scene: Scene) -> None:
    """Raises what a full file system raises when a checkpoint is written. Nothing is filled."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(scene.folder / "checkpoint_120" / "params"))


def _nan_loss(scene: Scene) -> None:
    """A learning rate far too high."""
    scene.rate = 1e30


def _new_functions(scene: Scene) -> None:
    """A statistic of the batch, by a new jitted lambda each time."""
    jax.jit(lambda images: jnp.sqrt((images**2).mean()))(scene.images).block_until_ready()


def _slow_input(scene: Scene) -> None:
    """Each batch takes its time."""
    time.sleep(INPUT_SECONDS)


def _stalled_step(scene: Scene) -> None:
    """Waits for a lock that nobody frees."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


_HOOKS = {
    each.__name__.removeprefix("_"): each
    for each in (
        _array_leak, _bad_record, _changing_shapes, _changing_types, _cold_requests, _crash, _disk_full, _nan_loss,
        _new_functions, _slow_input, _stalled_step,
    )
}  # fmt: skip


def _fault(name: str, causes: list[str], when: str = "", **fields: Any) -> Fault:
    if when:
        fields[when] = _HOOKS[name]
    return Fault(causes=tuple(causes), **fields)


_TABLES = tomllib.loads((resources.files(__package__) / "faults.toml").read_text(encoding="utf-8"))
FAULTS: dict[str, Fault] = {name: _fault(name, **fields) for name, fields in _TABLES.items()}
"""All of them by name, in the order of their names."""
