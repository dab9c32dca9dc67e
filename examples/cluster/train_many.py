"""Trains on all processes of a job: `jax.distributed` finds out from Slurm, GKE or a Cloud TPU who they are.

pip install .
sbatch examples/cluster/train.sbatch                  # or the same command under XPK or in a JobSet
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec


def loss(weights, images, labels):
    scores = jax.nn.log_softmax(jnp.tanh(images @ weights["in"]) @ weights["out"])
    return -jnp.mean(jnp.sum(scores * labels, axis=1))


@jax.jit
def train_step(weights, images, labels):
    value, gradients = jax.value_and_grad(loss)(weights, images, labels)
    return jax.tree.map(lambda weight, gradient: weight - 0.1 * gradient, weights, gradients), value


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--pause", type=float, default=0.01, help="seconds that loading a batch takes")
    options = parser.parse_args()
    jax.distributed.initialize()
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    rows, everywhere = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())
    random = np.random.default_rng(jax.process_index())
    weights = {"in": np.full((64, 256), 0.01, np.float32), "out": np.full((256, 10), 0.01, np.float32)}
    weights = jax.device_put(weights, everywhere)
    for step in range(options.steps):
        time.sleep(options.pause)
        images = random.normal(size=(32, 64)).astype(np.float32)
        labels = np.eye(10, dtype=np.float32)[random.integers(0, 10, 32)]
        batch = [jax.make_array_from_process_local_data(rows, local) for local in (images, labels)]
        weights, value = train_step(weights, *batch)
        if step % 100 == 0 and jax.process_index() == 0:
            print(f"step {step}: loss {value:.3f}", flush=True)
    jax.block_until_ready(weights)


if __name__ == "__main__":
    main()
