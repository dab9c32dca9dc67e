"""Optax with a learning rate that Python sets: a schedule of one's own writes a float into the optimiser's state."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

WIDTH = 64
optimizer = optax.inject_hyperparams(optax.adam)(learning_rate=1e-3)


@jax.jit
def init(key):
    keys = jax.random.split(key, 3)
    parameters = [jax.random.normal(k, (WIDTH, WIDTH)) / jnp.sqrt(WIDTH) for k in keys]
    return parameters, optimizer.init(parameters)


@jax.jit
def train_step(parameters, state, x, y):
    def loss_fn(parameters):
        z = x
        for matrix in parameters:
            z = jnp.tanh(z @ matrix)
        return jnp.mean((z - y) ** 2)

    loss, gradients = jax.value_and_grad(loss_fn)(parameters)
    updates, state = optimizer.update(gradients, state, parameters)
    return optax.apply_updates(parameters, updates), state, loss


random = np.random.default_rng(0)
target = random.normal(size=(WIDTH, WIDTH)).astype(np.float32) / 8
parameters, state = init(jax.random.key(0))
for step in range(600):
    #: other
    x = random.normal(size=(256, WIDTH)).astype(np.float32)
    y = np.tanh(x @ target)
    if step and step % 100 == 0:
        state.hyperparams["learning_rate"] = 1e-3 * 0.5 ** (step // 100)
    #: step
    parameters, state, loss = train_step(parameters, state, x, y)
    if step % 100 == 99:
        print(f"step {step + 1}: loss {loss:.5f}")
#: other
