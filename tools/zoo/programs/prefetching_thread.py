"""A Flax NNX classifier whose batches a thread prepares and puts on the device ahead, as `prefetch_to_device` does."""

import queue
import threading

import jax
import numpy as np
import optax
from flax import nnx

STEPS = 80


class Classifier(nnx.Module):
    def __init__(self, rngs):
        self.hidden = nnx.Linear(128, 256, rngs=rngs)
        self.norm = nnx.LayerNorm(256, rngs=rngs)
        self.out = nnx.Linear(256, 4, rngs=rngs)

    def __call__(self, x):
        return self.out(nnx.gelu(self.norm(self.hidden(x))))


@nnx.jit
def build():
    model = Classifier(nnx.Rngs(0))
    return model, nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param)


@nnx.jit
def train_step(model, optimizer, x, y):
    def loss_fn(model):
        return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()

    loss, gradients = nnx.value_and_grad(loss_fn)(model)
    optimizer.update(model, gradients)
    return loss


def batches():
    random = np.random.default_rng(0)
    directions = random.normal(size=(4, 128))
    for _ in range(STEPS):
        y = random.integers(0, 4, size=256)
        yield (directions[y] + random.normal(size=(256, 128))).astype(np.float32), y.astype(np.int32)


def prefetch(iterator, size=2):
    ready = queue.Queue(size)

    def fill():
        for batch in iterator:
            ready.put(jax.device_put(batch))
        ready.put(None)

    threading.Thread(target=fill, daemon=True).start()
    while (batch := ready.get()) is not None:
        yield batch


model, optimizer = build()
#: step
for number, (x, y) in enumerate(prefetch(batches()), 1):
    loss = train_step(model, optimizer, x, y)
    if number % 40 == 0:
        print(f"step {number}: loss {loss:.2f}")
#: other
