"""Flax NNX regression whose learning rate is far too high: the loss is not a number after a few steps."""

import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx


class Model(nnx.Module):
    def __init__(self, rngs):
        self.hidden = nnx.Linear(16, 64, rngs=rngs)
        self.out = nnx.Linear(64, 1, rngs=rngs)

    def __call__(self, x):
        return self.out(nnx.relu(self.hidden(x)))


@nnx.jit
def build():
    model = Model(nnx.Rngs(0))
    return model, nnx.Optimizer(model, optax.sgd(0.8), wrt=nnx.Param)


@nnx.jit
def train_step(model, optimizer, x, y):
    loss, gradients = nnx.value_and_grad(lambda model: jnp.mean((model(x) - y) ** 2))(model)
    optimizer.update(model, gradients)
    return loss


model, optimizer = build()
random = np.random.default_rng(0)
#: step
for number in range(1, 401):
    x = random.normal(size=(64, 16)).astype(np.float32)
    loss = train_step(model, optimizer, x, 10 * x[:, :1] ** 2)
    if number % 100 == 0:
        print(f"step {number}: loss {float(loss):.4f}")
