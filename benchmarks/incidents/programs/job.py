"""A training job of one process or of several, with a fault on request. What it logs is what an incident leaves.

python job.py FAULT [PROCESS COUNT PORT FOLDER]
"""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
import time

FAULT, _, TOGETHER = sys.argv[1].partition("+")
"""`disk_full+together`: the processes also add up their losses in each step, and so wait for each other."""
PROCESS, COUNT, PORT = (int(each) for each in (*sys.argv[2:5], "0", "1", "0")[:3])
FOLDER = sys.argv[5] if len(sys.argv) > 5 else "/tmp"
FAULTY = PROCESS == COUNT - 1
"""The fault is on the last process."""

logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO, stream=sys.stderr)
logging.Formatter.converter = time.gmtime
LOG = logging.getLogger("train")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.experimental import multihost_utils  # noqa: E402

import jaxobs  # noqa: E402

if FAULT == "late_init":
    jnp.zeros(3)
    jax.distributed.initialize(f"127.0.0.1:{PORT}", COUNT, PROCESS)
if COUNT > 1:
    jax.distributed.initialize(
        f"127.0.0.1:{PORT}", COUNT, PROCESS, initialization_timeout=10, heartbeat_timeout_seconds=10
    )


@jax.jit  # type: ignore[untyped-decorator]
def train_step(w: jax.Array, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    loss, gradient = jax.value_and_grad(lambda v: jnp.mean((x @ v - y) ** 2))(w)
    return w - 0.1 * gradient, loss


def main() -> None:
    random = np.random.default_rng(PROCESS)
    w = jnp.zeros((8,))
    for step in range(12):
        size = 16 + (step if FAULT == "shapes" else 0)
        x = random.normal(size=(size, 8)).astype(np.float32)
        if FAULT == "bad_record" and step >= 6:
            x[3, 2] = np.nan
        if FAULT == "overflow" and step >= 6:
            w = w * 1e30
        y = x.sum(axis=1)
        if FAULT in ("bad_record", "overflow"):
            jaxobs.watch(input_batch=x)
        w, loss = train_step(w, x, y)
        if FAULT in ("bad_record", "overflow"):
            jaxobs.watch(loss=loss)
        if TOGETHER:
            loss = multihost_utils.process_allgather(loss).mean()
        LOG.info("step %d: loss %.4f", step, float(loss))
        time.sleep(0.15)
        if step == 5 and FAULTY:
            fail(w)
    LOG.info("training finished")


def fail(w: jax.Array) -> None:
    if FAULT == "disk_full":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), f"{FOLDER}/checkpoint_5/w.npy")
    if FAULT == "sigkill":
        os.kill(os.getpid(), signal.SIGKILL)
    if FAULT == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if FAULT == "exception":
        raise ValueError("label 1001 is out of range for 1000 classes in shard-00017")
    if FAULT == "tracer":
        jax.jit(lambda a: 1 if a > 0 else 2)(w[0])
    if FAULT == "donated":
        jax.jit(lambda a: a * 2, donate_argnums=0)(w).block_until_ready()
        LOG.info("norm %f", float(jnp.linalg.norm(w)))
    if FAULT == "host_memory":
        np.ones((2**50,), np.float64)
    if FAULT == "mesh":
        jax.device_put(jnp.ones((7,)), jax.NamedSharding(jax.make_mesh((2,), ("a",)), jax.P("a"))).block_until_ready()
    if FAULT == "caught_and_retried":
        try:
            raise OSError(errno.EIO, os.strerror(errno.EIO), f"{FOLDER}/checkpoint_5")
        except OSError:
            LOG.warning("saving the checkpoint failed, trying again", exc_info=True)
        LOG.info("saved the checkpoint of step 5")


if __name__ == "__main__":
    main()
