"""A network for the heat equation: derivatives of derivatives, trained by Optax's L-BFGS with a line search."""

import itertools

import jax
import jax.numpy as jnp
import optax


@jax.jit
def init(key):
    sizes = (2, 32, 32, 32, 1)
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        (jax.random.normal(key, shape) / jnp.sqrt(shape[0]), jnp.zeros(shape[1]))
        for key, shape in zip(keys, itertools.pairwise(sizes), strict=True)
    ]


def network(params, z):
    for w, b in params[:-1]:
        z = jnp.tanh(z @ w + b)
    w, b = params[-1]
    return (z @ w + b)[0]


def loss(params):
    def residual(z):
        second = jax.hessian(network, argnums=1)(params, z)
        first = jax.grad(network, argnums=1)(params, z)
        return first[1] - 0.05 * second[0, 0]

    def start(x):
        return network(params, jnp.stack([x, 0.0])) - jnp.sin(jnp.pi * x)

    return jnp.mean(jax.vmap(residual)(points) ** 2) + jnp.mean(jax.vmap(start)(points[:, 0]) ** 2)


@jax.jit
def step(params, state):
    value, gradients = optax.value_and_grad_from_state(loss)(params, state=state)
    updates, state = optimizer.update(gradients, state, params, value=value, grad=gradients, value_fn=loss)
    return optax.apply_updates(params, updates), state, value


optimizer = optax.lbfgs()
points = jax.jit(lambda key: jax.random.uniform(key, (512, 2)))(jax.random.key(1))
params = init(jax.random.key(0))
state = jax.jit(optimizer.init)(params)
#: step
for number in range(120):
    params, state, value = step(params, state)
    if number % 30 == 0:
        print(f"step {number}: loss {value:.2f}")
