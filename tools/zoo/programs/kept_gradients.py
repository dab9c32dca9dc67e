"""Keeps the gradients of every step in a list, to look at their spread one day."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

optimizer = optax.adam(1e-3)


@jax.jit
def init(key):
    first, second = jax.random.split(key)
    parameters = {"w1": jax.random.normal(first, (128, 512)) / 11, "w2": jax.random.normal(second, (512, 128)) / 22}
    return parameters, optimizer.init(parameters)


@jax.jit
def train_step(parameters, state, x):
    def loss_fn(parameters):
        return jnp.mean((jnp.tanh(x @ parameters["w1"]) @ parameters["w2"] - x) ** 2)

    loss, gradients = jax.value_and_grad(loss_fn)(parameters)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(parameters, updates), state, loss, gradients


parameters, state = init(jax.random.key(0))
random = np.random.default_rng(0)
history = []
#: step
for number in range(1, 691):
    x = random.normal(size=(512, 128)).astype(np.float32)
    parameters, state, loss, gradients = train_step(parameters, state, x)
    history.append(gradients)
    if number % 200 == 0:
        print(f"step {number}: loss {loss:.4f}, {len(history)} gradients kept")
