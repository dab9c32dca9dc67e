"""Saves the parameters to a bucket after every step."""

import io
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax


class Bucket:
    """As a client of an object store: an upload takes a while."""

    def __init__(self):
        self.uploaded = 0

    def put(self, name, body):
        time.sleep(0.06)
        self.uploaded += len(body)


bucket = Bucket()
optimizer = optax.adamw(1e-3)


@jax.jit
def init(key):
    first, second = jax.random.split(key)
    params = {"in": jax.random.normal(first, (64, 256)) / 8, "out": jax.random.normal(second, (256, 64)) / 16}
    return params, optimizer.init(params)


@jax.jit
def train_step(params, state, x):
    def loss_fn(params):
        return jnp.mean((jax.nn.gelu(x @ params["in"]) @ params["out"] - x) ** 2)

    loss, gradients = jax.value_and_grad(loss_fn)(params)
    updates, state = optimizer.update(gradients, state, params)
    return optax.apply_updates(params, updates), state, loss


def save(number, params):
    body = io.BytesIO()
    np.savez(body, **params)
    bucket.put(f"step-{number}.npz", body.getvalue())


params, state = init(jax.random.key(0))
random = np.random.default_rng(0)
for number in range(120):
    #: step
    x = random.normal(size=(256, 64)).astype(np.float32)
    params, state, loss = train_step(params, state, x)
    jax.block_until_ready(params)
    #: checkpoint
    save(number, params)
#: other
print(f"loss {loss:.3f}, {bucket.uploaded / 2**20:.0f} MiB uploaded")
