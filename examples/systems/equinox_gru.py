"""An Equinox GRU that says which of two made-up processes a sequence is from; the sequences are of any length."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Classifier(eqx.Module):
    cell: eqx.nn.GRUCell
    out: eqx.nn.Linear

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.cell = eqx.nn.GRUCell(1, 32, key=first)
        self.out = eqx.nn.Linear(32, 1, key=second)

    def __call__(self, sequence):
        hidden, _ = jax.lax.scan(lambda h, x: (self.cell(x, h), None), jnp.zeros(32), sequence)
        return self.out(hidden)[0]


def loss_fn(model, sequences, labels):
    return optax.sigmoid_binary_cross_entropy(jax.vmap(model)(sequences), labels).mean()


optimizer = optax.adam(3e-3)


@eqx.filter_jit
def train_step(model, state, sequences, labels):
    loss, gradients = eqx.filter_value_and_grad(loss_fn)(model, sequences, labels)
    updates, state = optimizer.update(gradients, state)
    return eqx.apply_updates(model, updates), state, loss


def batches(random, count):
    """Each batch is as long as its longest sequence."""
    for _ in range(count):
        lengths = random.integers(20, 90, size=4)
        labels = random.integers(0, 2, size=4)
        sequences = np.zeros((4, lengths.max(), 1), np.float32)
        for row, (length, label) in enumerate(zip(lengths, labels, strict=True)):
            noise = random.normal(size=length)
            sequences[row, -length:, 0] = np.cumsum(noise) / np.sqrt(length) if label else noise
        yield sequences, labels.astype(np.float32)


model = eqx.filter_jit(Classifier)(jax.random.key(0))
state = jax.jit(optimizer.init)(eqx.filter(model, eqx.is_array))
#: step
for number, (sequences, labels) in enumerate(batches(np.random.default_rng(0), 24), 1):
    model, state, loss = train_step(model, state, sequences, labels)
    if number % 8 == 0:
        print(f"step {number}: loss {loss:.4f}")
