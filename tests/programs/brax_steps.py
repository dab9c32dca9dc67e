"""Brax: an environment reset, stepped, and rolled out under `scan` and `vmap`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from brax import envs


def main() -> None:
    """Pushes an inverted pendulum."""
    environment = envs.get_environment("inverted_pendulum", backend="generalized")
    reset, step = jax.jit(environment.reset), jax.jit(environment.step)
    state = reset(jax.random.PRNGKey(0))
    for _ in range(3):
        state = step(state, jnp.zeros(environment.action_size))
    print("reward", round(float(state.reward), 4))

    @jax.jit
    def roll_out(state: Any, actions: Any) -> Any:
        return jax.lax.scan(lambda s, a: (environment.step(s, a), s.reward), state, actions)

    many = jax.vmap(reset)(jax.random.split(jax.random.PRNGKey(1), 4))
    for length in (5, 8):
        _, rewards = jax.vmap(roll_out)(many, jnp.zeros((4, length, environment.action_size)))
        print("rewards", rewards.shape, round(float(rewards.sum()), 4))


if __name__ == "__main__":
    main()
