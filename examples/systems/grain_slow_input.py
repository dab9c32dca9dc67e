"""A small model fed by a Grain pipeline whose augmentation takes longer than a step."""

import grain
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

images, labels = load_digits(return_X_y=True)
images = (images / 16).reshape(-1, 8, 8).astype(np.float32)


def augment(index):
    """Shifts and blurs an image, slowly."""
    random = np.random.default_rng(index)
    image = np.roll(images[index], random.integers(-1, 2, size=2), axis=(0, 1))
    for _ in range(60):  # Far longer than a step: what the device does meanwhile, the stopwatch does not see.
        image = 0.99 * image + 0.01 * np.abs(np.fft.ifft2(np.fft.fft2(image)))
    return {"image": image.astype(np.float32).ravel(), "label": labels[index]}


optimizer = optax.adam(1e-3)


@jax.jit
def init(key):
    first, second = jax.random.split(key)
    parameters = {"w1": jax.random.normal(first, (64, 128)) / 8, "w2": jax.random.normal(second, (128, 10)) / 11}
    return parameters, optimizer.init(parameters)


@jax.jit
def train_step(parameters, state, batch):
    def loss_fn(parameters):
        logits = jnp.maximum(batch["image"] @ parameters["w1"], 0) @ parameters["w2"]
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["label"]).mean()

    loss, gradients = jax.value_and_grad(loss_fn)(parameters)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(parameters, updates), state, loss


dataset = grain.MapDataset.range(len(images)).shuffle(seed=0).repeat(2).map(augment).batch(32, drop_remainder=True)
parameters, state = init(jax.random.key(0))
iterator = iter(dataset.to_iter_dataset(grain.ReadOptions(num_threads=0)))
number = 0
#: input_wait
for batch in iterator:
    #: step
    parameters, state, loss = train_step(parameters, state, batch)
    number += 1
    if number % 50 == 0:
        print(f"step {number}: loss {loss:.4f}")
    #: input_wait
#: other
