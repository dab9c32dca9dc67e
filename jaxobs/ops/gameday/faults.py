"""The faults: what injects each, and the truth about it."""

from __future__ import annotations

import errno
import os
import threading
import time

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
    from jaxobs.demo import training

    size = SIZES[min(scene.count // EVERY, len(SIZES) - 1)]
    with request("/classify"):
        np.asarray(training.predict(scene.model, np.resize(scene.images, (size, 8, 8, 1))))


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


FAULTS: dict[str, Fault] = {
    "array_leak": Fault(
        title="Each batch is kept on the device in a list that nobody empties.",
        causes=("memory_leak",),
        alert="JaxArrayLeak",
        lead=4,
        undo="Drop the references, or keep NumPy copies: `np.asarray(batch)`.",
        on_step=_array_leak,
    ),
    "bad_record": Fault(
        title="A record in each batch contains NaN; the loss jumps to that of guessing.",
        causes=("nonfinite_input",),
        alert="JaxNonFiniteValues",
        lead=2,
        undo="Find and fix the record, check for NaN in the input pipeline, and go back to the last good checkpoint.",
        on_input=_bad_record,
    ),
    "cache_not_saving": Fault(
        title="The persistent cache's directory cannot be written, so nothing is stored, and nothing ever hits.",
        causes=("cache_unusable",),
        alert="JaxPersistentCacheNotSaving",
        lead=2,
        undo="Set `jax_compilation_cache_dir` to a directory that the job can write; "
        "`jaxobs cache verify DIR` checks it.",
        settings={
            "JAX_ENABLE_COMPILATION_CACHE": "true",
            "JAX_COMPILATION_CACHE_DIR": "/sys/kernel",
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        },
    ),
    "changing_shapes": Fault(
        title="Batches have a different size in each step, so the training step recompiles again and again.",
        causes=("recompilation",),
        alert="JaxRecompilationStorm",
        lead=1,
        from_start=45,
        undo="Drop the last batch or pad batches to one size; bucket sizes that have to vary.",
        on_input=_changing_shapes,
    ),
    "changing_types": Fault(
        title="The learning rate changes its type from step to step: int, float, float32, ... "
        "Each one is compiled for.",
        causes=("recompilation",),
        alert="JaxRecompilationStorm",
        lead=1,
        from_start=45,
        undo="Make it one type where it is read: `jnp.float32(rate)`.",
        on_step=_changing_types,
    ),
    "cold_requests": Fault(
        title="Requests arrive before their sizes were compiled: some of them wait for a compilation.",
        causes=("cold_requests",),
        alert="JaxColdRequestsHigh",
        lead=2,
        from_start=45,
        undo="Compile each size before the traffic: `jaxobs.warmup`, `jaxobs cache warm`; pad requests to a few sizes.",
        on_step=_cold_requests,
    ),
    "crash": Fault(
        title="A label out of range raises ValueError, and the program ends.",
        causes=("program_error",),
        alert="JaxTrainingGone",
        lead=10,
        only="the job has several processes or is 6 h old, and its target is dropped: so not in a rehearsal",
        undo="Fix the record or the check, then restart from the last checkpoint.",
        on_input=_crash,
    ),
    "disk_full": Fault(
        title="The file system is full when a checkpoint is saved, and the program ends.",
        causes=("disk_full",),
        alert="JaxTrainingGone",
        lead=10,
        only="the job has several processes or is 6 h old, and its target is dropped: so not in a rehearsal",
        undo="Free space or enlarge the volume, check whether the newest checkpoint is whole, then restart from it.",
        on_step=_disk_full,
    ),
    "nan_loss": Fault(
        title="The learning rate jumps to 1e30; the parameters overflow and the loss is NaN from then on.",
        causes=("nonfinite_values",),
        alert="JaxNonFiniteValues",
        lead=2,
        undo="Go back to the last good checkpoint and correct the schedule of the learning rate.",
        on_step=_nan_loss,
    ),
    "new_functions": Fault(
        title="A lambda is jitted inside the training loop: a new function in each step, compiled each time.",
        causes=("recompilation",),
        alert="JaxRecompilationStorm",
        lead=1,
        from_start=45,
        undo="Create the jitted function once, outside of the loop.",
        on_step=_new_functions,
    ),
    "slow_input": Fault(
        title="The input pipeline takes half a second for each batch, and the device waits for it.",
        causes=("input_bound",),
        alert="JaxInputBound",
        lead=2,
        from_start=30,
        undo="Prefetch, more workers, or data that is stored prepared.",
        on_input=_slow_input,
    ),
    "stalled_step": Fault(
        title="The training loop waits for a lock inside a step, for ever.",
        causes=("process_stuck",),
        alert="JaxProcessStuck",
        lead=2,
        undo="Take the stacks (`py-spy dump --pid PID`), then restart from the last checkpoint; fix the locks.",
        on_step=_stalled_step,
    ),
}
"""All of them by name, in the order of their names."""
