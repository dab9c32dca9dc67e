"""REINFORCE on 64 cart-poles that are part of the program, in the style of Gymnax: one call for each update."""

import functools

import jax
import jax.numpy as jnp
import optax

STEPS, CARTS = 100, 64
optimizer = optax.adam(2e-2)


def environment_step(state, action):
    x, x_dot, theta, theta_dot = state
    force = jnp.where(action == 1, 10.0, -10.0)
    temp = (force + 0.05 * theta_dot**2 * jnp.sin(theta)) / 1.1
    theta_acc = (9.8 * jnp.sin(theta) - jnp.cos(theta) * temp) / (0.5 * (4 / 3 - 0.1 * jnp.cos(theta) ** 2 / 1.1))
    x_acc = temp - 0.05 * theta_acc * jnp.cos(theta) / 1.1
    state = state + 0.02 * jnp.stack([x_dot, x_acc, theta_dot, theta_acc])
    return state, (jnp.abs(state[0]) > 2.4) | (jnp.abs(state[2]) > 0.21)


def logits(params, state):
    return jnp.tanh(state @ params["w1"] + params["b1"]) @ params["w2"]


def episode(params, key):
    def step(carry, key):
        state, over = carry
        action = jax.random.categorical(key, logits(params, state))
        after, failed = environment_step(state, action)
        return (after, over | failed), (state, action, ~over)

    keys = jax.random.split(key, STEPS)
    begin = jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05)
    return jax.lax.scan(step, (begin, jnp.bool_(False)), keys)[1]


@functools.partial(jax.jit, donate_argnames=("params", "state"))
def update(params, state, key):
    key, draw = jax.random.split(key)
    seen, actions, alive = jax.vmap(episode, in_axes=(None, 0))(params, jax.random.split(draw, CARTS))
    alive = alive.astype(jnp.float32)
    returns = jnp.cumsum(alive[:, ::-1], axis=1)[:, ::-1]
    advantage = (returns - returns.mean(0)) * alive / 20.0

    def loss_fn(params):
        log_p = jax.nn.log_softmax(logits(params, seen))
        return -jnp.mean(jnp.take_along_axis(log_p, actions[..., None], -1)[..., 0] * advantage)

    updates, state = optimizer.update(jax.grad(loss_fn)(params), state)
    return optax.apply_updates(params, updates), state, key, alive.sum(1).mean()


@jax.jit
def init(key):
    first, second, key = jax.random.split(key, 3)
    params = {
        "w1": jax.random.normal(first, (4, 32)) / 2,
        "b1": jnp.zeros(32),
        "w2": jax.random.normal(second, (32, 2)) / 8,
    }
    return params, optimizer.init(params), key


params, state, key = init(jax.random.key(0))
#: step
for number in range(1, 61):
    params, state, key, length = update(params, state, key)
    if number % 20 == 0:
        print(f"update {number}: episodes of {length:.0f} steps")
#: other
