"""Clears JAX's caches after each epoch, because memory once ran out; two functions, an autoencoder."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

optimizer = optax.adam(1e-3)
random = np.random.default_rng(0)
data = random.normal(size=(40, 64, 32)).astype(np.float32)
held_out = random.normal(size=(256, 32)).astype(np.float32)


def reconstruct(params, x):
    hidden = jnp.tanh(x @ params["encode"])
    return jnp.tanh(hidden @ params["inner"]) @ params["decode"]


def loss_fn(params, x):
    return jnp.mean((reconstruct(params, x) - x) ** 2)


@jax.jit
def train_step(params, state, x):
    loss, gradients = jax.value_and_grad(loss_fn)(params, x)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(params, updates), state, loss


@jax.jit
def error(params, x):
    return jnp.sqrt(loss_fn(params, x))


shapes = {"encode": (32, 16), "inner": (16, 16), "decode": (16, 32)}
params = {name: random.normal(size=shape).astype(np.float32) / 4 for name, shape in shapes.items()}
params, state = jax.jit(lambda params: (params, optimizer.init(params)))(params)
for epoch in range(8):
    #: step
    for batch in data:
        params, state, loss = train_step(params, state, batch)
    #: eval
    print(f"epoch {epoch + 1}: error {error(params, held_out):.3f}")
    #: step
    jax.clear_caches()
#: other
