"""A softmax whose temperature falls in each step; it is part of a configuration that is static."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax


@dataclasses.dataclass(frozen=True)
class Config:
    width: int
    temperature: float


@jax.jit
def init(key):
    first, second = jax.random.split(key)
    return 0.1 * jax.random.normal(first, (64, 64)), 0.1 * jax.random.normal(second, (64, 1))


@functools.partial(jax.jit, static_argnums=0)
def train_step(config, params, state, x, y):
    def loss(params):
        attention = jax.nn.softmax(x @ params[0] / config.temperature)
        return jnp.mean((attention @ params[1] - y) ** 2)

    value, gradients = jax.value_and_grad(loss)(params)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(params, updates), state, value


optimizer = optax.sgd(0.1)
params = init(jax.random.key(0))
state = jax.jit(optimizer.init)(params)
rng = np.random.default_rng(0)
x = rng.normal(size=(256, 64)).astype(np.float32)
y = x[:, :1]
#: step
for number in range(40):
    config = Config(width=64, temperature=2.0 * 0.95**number)
    params, state, value = train_step(config, params, state, x, y)
    if number % 10 == 0:
        print(f"step {number}: loss {value:.3f}")
