"""A trainer with nothing wrong: one shape, one type, nothing kept."""

import time

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_digits

import jaxobs

BATCH = 256


@jaxobs.jit
def train_step(params, images, labels):
    def loss_of(params):
        scores = jnp.tanh(images @ params["hidden"]) @ params["out"]
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(scores), labels[:, None], 1))

    loss, gradients = jax.value_and_grad(loss_of)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), loss


@jax.jit
def init(key):
    first, second = jax.random.split(key)
    return {"hidden": 0.1 * jax.random.normal(first, (64, 512)), "out": 0.05 * jax.random.normal(second, (512, 10))}


def batches(images, labels, dice):
    while True:
        order = dice.permutation(len(images))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            chosen = order[start : start + BATCH]
            yield images[chosen], labels[chosen]


digits = load_digits()
images, labels = (digits.data / 16.0).astype(np.float32), digits.target.astype(np.int32)
params = init(jax.random.key(0))
loader = jaxobs.data(batches(images, labels, np.random.default_rng(0)), "digits")
for batch in jaxobs.steps(loader, "train", items=lambda batch: BATCH):
    params, loss = train_step(params, *batch)
    jaxobs.watch(loss=loss)
    loss.block_until_ready()
    time.sleep(0.25)
