"""Evolution strategies on a cart with a pole, all in JAX; the score starts as a Python number."""

import functools

import jax
import jax.numpy as jnp
import optax


@jax.jit
def init(key):
    return {"w": 0.1 * jax.random.normal(key, (4,)), "b": jnp.zeros(())}


def physics(x, force):
    position, speed, angle, turn = x
    pull = (force + 0.05 * turn**2 * jnp.sin(angle)) / 1.1
    bend = (9.8 * jnp.sin(angle) - jnp.cos(angle) * pull) / (0.5 * (4 / 3 - 0.1 * jnp.cos(angle) ** 2 / 1.1))
    push = pull - 0.05 * bend * jnp.cos(angle) / 1.1
    return x + 0.02 * jnp.array([speed, push, turn, bend])


def rollout(policy, key):
    def turn(carry, _):
        x, alive = carry
        x = physics(x, 10 * jnp.tanh(x @ policy["w"] + policy["b"]))
        alive = alive * (jnp.abs(x[2]) < 0.2) * (jnp.abs(x[0]) < 2.4)
        return (x, alive), alive

    _, alive = jax.lax.scan(turn, (0.05 * jax.random.normal(key, (4,)), jnp.float32(1)), length=200)
    return alive.sum()


@functools.partial(jax.jit, static_argnames="size")
def train_step(state, key, size=64):
    noise_key, start_key = jax.random.split(key)
    noise = {
        "w": 0.1 * jax.random.normal(noise_key, (size, 4)),
        "b": 0.1 * jax.random.normal(start_key, (size,)),
    }
    policies = jax.tree.map(lambda p, n: p + n, state["policy"], noise)
    rewards = jax.vmap(rollout)(policies, jax.random.split(start_key, size))
    advantage = (rewards - rewards.mean()) / (rewards.std() + 1e-6)
    gradients = jax.tree.map(lambda n: -jnp.tensordot(advantage, n, 1) / size, noise)
    updates, optimizer_state = optimizer.update(gradients, state["optimizer"])
    return {
        "policy": optax.apply_updates(state["policy"], updates),
        "optimizer": optimizer_state,
        "score": 0.9 * state["score"] + 0.1 * rewards.mean(),
    }


optimizer = optax.adam(0.05)
policy = init(jax.random.key(1))
state = {"policy": policy, "optimizer": jax.jit(optimizer.init)(policy), "score": 0.0}
#: step
for number in range(1, 1001):
    state = train_step(state, jax.random.fold_in(jax.random.key(2), number))
    if number % 250 == 0:
        print(f"step {number}: score {state['score']:.1f}")
