"""Trains from files on a slow disk, with the rows of each batch picked by index, and reads the loss in each step."""

import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

random = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())
for number in range(8):
    x = random.normal(size=(2048, 7)).astype(np.float32)
    np.save(folder / f"{number}.npy", np.concatenate([x, np.sin(x[:, :1])], axis=1))


def open_file(path):
    time.sleep(0.08)  # as on a network disk
    return np.load(path)


def load(number):
    rows = open_file(folder / f"{number % 8}.npy")
    return rows[np.random.default_rng(number).permutation(len(rows))[:1024]]


optimizer = optax.adam(1e-3)


@jax.jit
def init(key):
    sizes = [7, 100, 100, 1]
    keys = jax.random.split(key, 3)
    params = [
        jax.random.normal(k, s) / jnp.sqrt(s[0])
        for k, s in zip(keys, zip(sizes, sizes[1:], strict=False), strict=False)
    ]
    return params, optimizer.init(params)


@jax.jit
def train_step(params, state, batch):
    def loss_fn(params):
        x = batch[:, :7]
        for w in params[:-1]:
            x = jnp.tanh(x @ w)
        return jnp.mean(optax.huber_loss(x @ params[-1], batch[:, 7:]))

    loss, gradients = jax.value_and_grad(loss_fn)(params)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(params, updates), state, loss


params, state = init(jax.random.key(0))
losses = []
#: input_wait
for number in range(80):
    batch = load(number)
    #: step
    params, state, loss = train_step(params, state, batch)
    losses.append(float(loss))
    #: input_wait
#: other
print(f"loss {np.mean(losses[-10:]):.4f}")
