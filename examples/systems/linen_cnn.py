"""A Flax Linen CNN on handwritten digits, with a test after each epoch."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from flax.training import train_state
from sklearn.datasets import load_digits

BATCH = 50


class CNN(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(16, (3, 3))(x))
        x = nn.avg_pool(x, (2, 2), strides=(2, 2))
        x = nn.relu(nn.Conv(32, (3, 3))(x))
        x = x.reshape((x.shape[0], -1))
        x = nn.relu(nn.Dense(64)(x))
        return nn.Dense(10)(x)


@jax.jit
def init(key):
    model = CNN()
    parameters = model.init(key, jnp.ones((1, 8, 8, 1)))["params"]
    return train_state.TrainState.create(apply_fn=model.apply, params=parameters, tx=optax.adam(1e-3))


def loss_fn(parameters, apply, images, labels):
    logits = apply({"params": parameters}, images)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), logits


@jax.jit
def train_step(state, images, labels):
    gradients, _ = jax.grad(loss_fn, has_aux=True)(state.params, state.apply_fn, images, labels)
    return state.apply_gradients(grads=gradients)


@jax.jit
def eval_step(state, images, labels):
    loss, logits = loss_fn(state.params, state.apply_fn, images, labels)
    return loss, jnp.mean(jnp.argmax(logits, -1) == labels)


images, labels = load_digits(return_X_y=True)
images = (images / 16).reshape(-1, 8, 8, 1).astype(np.float32)
train_images, test_images = images[:1500], images[1500:]
train_labels, test_labels = labels[:1500], labels[1500:]
state = init(jax.random.key(0))
random = np.random.default_rng(0)
for epoch in range(12):
    #: step
    order = random.permutation(len(train_images))
    for batch in order.reshape(-1, BATCH):
        state = train_step(state, train_images[batch], train_labels[batch])
    jax.block_until_ready(state.params)
    #: eval
    loss, accuracy = eval_step(state, test_images, test_labels)
    print(f"epoch {epoch + 1}: test loss {loss:.4f}, accuracy {accuracy:.3f}")
