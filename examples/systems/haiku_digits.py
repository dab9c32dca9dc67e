"""A Haiku MLP on handwritten digits; at the end, its accuracy for each digit."""

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

images, labels = load_digits(return_X_y=True)
images = (images / 16).astype(np.float32)
train_images, train_labels = images[:1500], labels[:1500]
test_images, test_labels = images[1500:], labels[1500:]


def forward(x):
    return hk.nets.MLP([256, 224, 192, 160, 128, 96, 64, 10])(x)


network = hk.without_apply_rng(hk.transform(forward))
parameters = network.init(jax.random.PRNGKey(0), train_images[:1])
optimizer = optax.adam(1e-3)
state = optimizer.init(parameters)


def loss_of(parameters, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(network.apply(parameters, x), y).mean()


@jax.jit
def update(parameters, state, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(parameters, x, y)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(parameters, updates), state, loss


@jax.jit
def predict(parameters, x):
    return jnp.argmax(network.apply(parameters, x), axis=-1)


random = np.random.default_rng(0)
#: step
for epoch in range(40):
    order = random.permutation(len(train_images))
    for start in range(0, len(order), 64):
        batch = order[start : start + 64]
        parameters, state, loss = update(parameters, state, train_images[batch], train_labels[batch])
    if epoch % 20 == 19:
        print(f"epoch {epoch + 1}: loss {loss:.4f}")
#: eval
for digit in range(10):
    of_this = test_images[test_labels == digit]
    print(f"digit {digit}: {np.mean(predict(parameters, of_this) == digit):.3f}")
