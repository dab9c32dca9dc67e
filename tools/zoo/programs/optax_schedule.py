"""The network of `optax_decay` trained soundly: one optimiser whose learning rate follows a cosine, and one step."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

EPOCHS, BATCH = 12, 64
random = np.random.default_rng(0)
inputs = random.normal(size=(4096, 32)).astype(np.float32)
targets = np.sin(inputs @ random.normal(size=(32, 1))).astype(np.float32)


@jax.jit
def init(key):
    sizes = [32, 256, 256, 1]
    keys = jax.random.split(key, len(sizes))
    parameters = [
        {"w": jax.random.normal(k, (n, m)) / jnp.sqrt(n), "b": jnp.zeros(m)}
        for k, n, m in zip(keys, sizes, sizes[1:], strict=False)
    ]
    return parameters, optimizer.init(parameters)


def loss_fn(parameters, x, y):
    for layer in parameters[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    return jnp.mean((x @ parameters[-1]["w"] + parameters[-1]["b"] - y) ** 2)


@jax.jit
def train_step(parameters, state, x, y):
    loss, gradients = jax.value_and_grad(loss_fn)(parameters, x, y)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(parameters, updates), state, loss


schedule = optax.cosine_decay_schedule(0.05, EPOCHS * len(inputs) // BATCH)
optimizer = optax.sgd(schedule, momentum=0.9)
parameters, state = init(jax.random.key(0))
#: step
for epoch in range(EPOCHS):
    for start in range(0, len(inputs), BATCH):
        batch = inputs[start : start + BATCH], targets[start : start + BATCH]
        parameters, state, loss = train_step(parameters, state, *batch)
    print(f"epoch {epoch + 1}: loss {loss:.4f}")
