"""A Linen transformer block whose training step takes its configuration, made anew for each epoch, as static."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn


class Config:
    def __init__(self, width=64, heads=4, smoothing=0.1):
        self.width = width
        self.heads = heads
        self.smoothing = smoothing


class Block(nn.Module):
    width: int
    heads: int

    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(32, self.width)(tokens)
        mask = nn.make_causal_mask(tokens)
        x = x + nn.MultiHeadDotProductAttention(self.heads)(nn.LayerNorm()(x), mask=mask)
        x = x + nn.Dense(self.width)(nn.gelu(nn.Dense(4 * self.width)(nn.LayerNorm()(x))))
        return nn.Dense(32)(x)


optimizer = optax.adam(1e-3)


@functools.partial(jax.jit, static_argnames="config")
def init(key, config):
    parameters = Block(config.width, config.heads).init(key, jnp.zeros((1, 32), jnp.int32))
    return parameters, optimizer.init(parameters)


@functools.partial(jax.jit, static_argnames="config")
def train_step(parameters, state, tokens, config):
    def loss_fn(parameters):
        logits = Block(config.width, config.heads).apply(parameters, tokens[:, :-1])
        targets = optax.smooth_labels(jax.nn.one_hot(tokens[:, 1:], 32), config.smoothing)
        return optax.softmax_cross_entropy(logits, targets).mean()

    loss, gradients = jax.value_and_grad(loss_fn)(parameters)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(parameters, updates), state, loss


def epoch(number, parameters, state):
    config = Config()
    random = np.random.default_rng(number)
    for _ in range(40):
        tokens = (random.integers(0, 32, size=(16, 1)) + np.arange(33) * random.integers(1, 4, size=(16, 1))) % 32
        parameters, state, loss = train_step(parameters, state, tokens.astype(np.int32), config)
    print(f"epoch {number}: loss {loss:.4f}")
    return parameters, state


parameters, state = init(jax.random.key(0), Config())
#: step
for number in range(1, 7):
    parameters, state = epoch(number, parameters, state)
