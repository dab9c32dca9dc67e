"""Optax with a learning rate that Python sets: a schedule of one's own writes a float into the optimiser's state."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

WIDTH = 64
target = np.random.default_rng(1).normal(size=(WIDTH, WIDTH)).astype(np.float32) / 8
optimizer = optax.inject_hyperparams(optax.adam)(learning_rate=1e-3)


@jax.jit
def init(key):
    keys = jax.random.split(key, 3)
    parameters = [jax.random.normal(k, (WIDTH, WIDTH)) / jnp.sqrt(WIDTH) for k in keys]
    return parameters, optimizer.init(parameters)


@jax.jit
def train_step(parameters, state, x):
    def loss_fn(parameters):
        z = x
        for matrix in parameters:
            z = jnp.tanh(z @ matrix)
        return jnp.mean((z - jnp.tanh(x @ target)) ** 2)

    loss, gradients = jax.value_and_grad(loss_fn)(parameters)
    updates, state = optimizer.update(gradients, state, parameters)
    return optax.apply_updates(parameters, updates), state, loss


random = np.random.default_rng(0)
batches = random.normal(size=(8, 256, WIDTH)).astype(np.float32)
parameters, state = init(jax.random.key(0))
for step in range(600):
    #: other
    if step and step % 100 == 0:
        state.hyperparams["learning_rate"] = 1e-3 * 0.5 ** (step // 100)
    #: step
    parameters, state, loss = train_step(parameters, state, batches[step % 8])
    if step % 100 == 99:
        print(f"step {step + 1}: loss {loss:.5f}")
#: other
