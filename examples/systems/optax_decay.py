"""A network on made-up data; for each epoch an optimiser with a smaller learning rate, and a step made with it."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

random = np.random.default_rng(0)
inputs = random.normal(size=(4096, 32)).astype(np.float32)
targets = np.sin(inputs @ random.normal(size=(32, 1))).astype(np.float32)


@jax.jit
def init(key):
    sizes = [32, 256, 256, 1]
    keys = jax.random.split(key, len(sizes))
    return [
        {"w": jax.random.normal(k, (n, m)) / jnp.sqrt(n), "b": jnp.zeros(m)}
        for k, n, m in zip(keys, sizes, sizes[1:], strict=False)
    ]


def predict(parameters, x):
    for layer in parameters[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return x @ parameters[-1]["w"] + parameters[-1]["b"]


def loss_fn(parameters, x, y):
    return jnp.mean((predict(parameters, x) - y) ** 2)


parameters = init(jax.random.key(0))
#: step
for epoch in range(12):
    optimizer = optax.sgd(0.05 * 0.8**epoch, momentum=0.9)
    state = optimizer.init(parameters)

    @jax.jit
    def train_step(parameters, state, x, y):
        loss, gradients = jax.value_and_grad(loss_fn)(parameters, x, y)
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(parameters, updates), state, loss

    for start in range(0, len(inputs), 64):
        parameters, state, loss = train_step(parameters, state, inputs[start : start + 64], targets[start : start + 64])
    print(f"epoch {epoch + 1}: loss {loss:.4f}")
