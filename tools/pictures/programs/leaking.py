"""A trainer that keeps the gradient of each step in a list."""

import time

import jax
import jax.numpy as jnp


@jax.jit
def train_step(params, batch):
    loss, gradient = jax.value_and_grad(lambda p: jnp.mean((batch @ p) ** 2))(params)
    return params - 0.01 * gradient, loss, gradient


params = jax.random.normal(jax.random.key(0), (512, 256))
batch = jax.random.normal(jax.random.key(1), (1024, 512))
history = []
while True:
    params, loss, gradient = train_step(params, batch)
    history.append(gradient)
    time.sleep(0.05)
