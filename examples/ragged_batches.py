"""Trains on batches of which each has another length, so that `train_step` compiles again and again.

pip install '.[cli]'
jaxobs run --event-log events.jsonl examples/ragged_batches.py
jaxobs explain events.jsonl            # names the argument and the line, and what to do
"""

import random

import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def train_step(weights: jax.Array, tokens: jax.Array) -> jax.Array:
    gradient = jax.grad(lambda w: jnp.mean(jnp.tanh(w[tokens])))(weights)
    return weights - 0.1 * gradient


lengths = random.Random(7)
weights = jnp.zeros((1000, 64))
for _ in range(150):
    weights = train_step(weights, np.zeros((8, lengths.randint(20, 400)), np.int32))
