"""Progressive resizing with Equinox: a convolutional network sees images of 8, then 16, then 24 pixels."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

optimizer = optax.adam(2e-3)


class Network(eqx.Module):
    first: eqx.nn.Conv2d
    second: eqx.nn.Conv2d
    out: eqx.nn.Linear

    def __init__(self, key):
        keys = jax.random.split(key, 3)
        self.first = eqx.nn.Conv2d(1, 8, 3, padding=1, key=keys[0])
        self.second = eqx.nn.Conv2d(8, 16, 3, stride=2, padding=1, key=keys[1])
        self.out = eqx.nn.Linear(16, 2, key=keys[2])

    def __call__(self, image):
        x = jax.nn.relu(self.first(image))
        x = jax.nn.relu(self.second(x))
        return self.out(jnp.mean(x, axis=(1, 2)))


@eqx.filter_jit
def build(key):
    model = Network(key)
    return model, optimizer.init(eqx.filter(model, eqx.is_array))


@eqx.filter_jit
def train_step(model, state, images, labels):
    def loss_fn(model):
        return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(images), labels).mean()

    loss, gradients = eqx.filter_value_and_grad(loss_fn)(model)
    updates, state = optimizer.update(gradients, state)
    return eqx.apply_updates(model, updates), state, loss


def draw(random, size):
    labels = random.integers(0, 2, size=32)
    stripes = np.sin(np.arange(size) * 2.0) * np.ones((32, size, size))
    images = np.where(labels[:, None, None] == 1, stripes, np.swapaxes(stripes, 1, 2))
    return (images + 0.3 * random.normal(size=images.shape)).astype(np.float32)[:, None], labels


model, state = build(jax.random.PRNGKey(0))
random = np.random.default_rng(0)
#: step
for size in (8, 16, 24):
    for _ in range(40):
        model, state, loss = train_step(model, state, *draw(random, size))
    print(f"{size} pixels: loss {loss:.2f}")
#: other
