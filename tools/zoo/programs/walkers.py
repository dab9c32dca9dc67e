"""Random walks by `lax.fori_loop` outside of jit, each by the method of a new object."""

import jax
import jax.numpy as jnp
import numpy as np


class Walker:
    def __init__(self, number):
        self.number = number

    def step(self, i, carry):
        key, place = carry
        key, draw = jax.random.split(key)
        move = jax.random.uniform(draw, place.shape) - 0.5
        return key, jnp.where(jnp.sum((place + move) ** 2) < 9.0, place + move, place - move)


ends = []
for number in range(22):
    walker = Walker(number)
    key = np.asarray([0, number], np.uint32)
    _, place = jax.lax.fori_loop(0, 200, walker.step, (key, np.zeros(3, np.float32)))
    ends.append(np.asarray(place))
print(f"mean distance {np.linalg.norm(ends, axis=1).mean():.2f}")
