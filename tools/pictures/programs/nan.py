"""A trainer whose learning rate becomes too high: the loss grows, and then it is infinite, and NaN."""

import time

import jax
import jax.numpy as jnp

import jaxobs


@jax.jit
def train_step(params, batch, rate):
    loss, gradient = jax.value_and_grad(lambda p: jnp.mean((batch @ p) ** 2))(params)
    return params - rate * gradient, loss


key, other = jax.random.split(jax.random.key(0))
batch = jax.jit(lambda key: jax.random.normal(key, (1024, 512)))(key)
params = jax.jit(lambda key: jax.random.normal(key, (512, 256)))(other)
for number in jaxobs.steps(range(10**9), "train", items=lambda _: len(batch)):
    params, loss = train_step(params, batch, 10.0 if number < 40 else 400.0)
    jaxobs.watch(loss=loss)
    time.sleep(0.25)
