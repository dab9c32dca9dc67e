"""Gives the whole training set, a NumPy array, to each step, which picks its batch by itself."""

import jax
import numpy as np
import optax

optimizer = optax.adam(1e-3)
random = np.random.default_rng(0)
images = random.normal(size=(60000, 784)).astype(np.float32)
labels = (images[:, :10].argmax(1)).astype(np.int32)


@jax.jit
def create(key):
    first, second = jax.random.split(key)
    params = {"in": jax.random.normal(first, (784, 128)) / 28, "out": jax.random.normal(second, (128, 10)) / 11}
    return params, optimizer.init(params)


@jax.jit
def train_step(params, state, key, images, labels):
    rows = jax.random.randint(key, (128,), 0, len(images))

    def loss_fn(params):
        logits = jax.nn.relu(images[rows] @ params["in"]) @ params["out"]
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels[rows]).mean()

    loss, gradients = jax.value_and_grad(loss_fn)(params)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(params, updates), state, loss


params, state = create(jax.random.key(0))
keys = jax.random.split(jax.random.key(1), 200)
#: step
for number in range(200):
    params, state, loss = train_step(params, state, keys[number], images, labels)
    if number % 50 == 49:
        print(f"step {number + 1}: loss {loss:.3f}")
#: other
