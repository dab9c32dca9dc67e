"""Around the examples of docs/cache-commands.md."""

import time

import jax
import jax.numpy as jnp
import numpy as np

example(1)
assert evaluate(jnp.ones((4, 2)), augment(jnp.ones((3, 4)))) > 0
