"""Steps 32 cart-poles with `jax.vmap`, and jits nothing."""

import jax
import jax.numpy as jnp
import numpy as np


def environment_step(state, action):
    x, x_dot, theta, theta_dot = state
    force = jnp.where(action == 1, 10.0, -10.0)
    cos, sin = jnp.cos(theta), jnp.sin(theta)
    temp = (force + 0.05 * theta_dot**2 * sin) / 1.1
    theta_acc = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
    x_acc = temp - 0.05 * theta_acc * cos / 1.1
    new = jnp.stack([x + 0.02 * x_dot, x_dot + 0.02 * x_acc, theta + 0.02 * theta_dot, theta_dot + 0.02 * theta_acc])
    failed = (jnp.abs(new[0]) > 2.4) | (jnp.abs(new[2]) > 0.21)
    return jnp.where(failed, jnp.zeros(4), new), failed


def policy(state):
    return (state[2] + 0.5 * state[3] > 0).astype(jnp.int32)


states = jnp.asarray(np.random.default_rng(0).uniform(-0.05, 0.05, size=(32, 4)).astype(np.float32))
falls = 0
for _ in range(5000):
    #: step
    actions = jax.vmap(policy)(states)
    states, failed = jax.vmap(environment_step)(states, actions)
    #: other
    falls += int(failed.sum())  # operations that a line dispatches to read their result are a transfer
print(f"{falls} falls in 5,000 steps of 32 carts")
