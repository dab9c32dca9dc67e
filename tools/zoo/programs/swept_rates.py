"""Tries four learning rates at once: Haiku networks and their Optax states under one `vmap`."""

import haiku as hk
import jax
import numpy as np
import optax

random = np.random.default_rng(0)
labels = random.integers(0, 10, size=1500)
images = (random.normal(size=(10, 64))[labels] + random.normal(size=(1500, 64))).astype(np.float32)
network = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([32, 10])(x)))
optimizer = optax.inject_hyperparams(optax.sgd)(learning_rate=0.1, momentum=0.9)
rates = np.logspace(-2, 0, 4).astype(np.float32)


@jax.jit
def init(key, rates):
    def one(key, rate):
        params = network.init(key, images[:1])
        state = optimizer.init(params)
        state.hyperparams["learning_rate"] = rate
        return params, state

    return jax.vmap(one)(jax.random.split(key, len(rates)), rates)


def loss_fn(params, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(network.apply(params, x), y).mean()


@jax.jit
def sweep(params, states, x, y):
    def one(params, state):
        loss, gradients = jax.value_and_grad(loss_fn)(params, x, y)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss

    return jax.vmap(one)(params, states)


params, states = init(jax.random.PRNGKey(0), rates)
#: step
for _ in range(100):
    rows = random.integers(0, len(images), size=32)
    params, states, losses = sweep(params, states, images[rows], labels[rows])
losses = np.asarray(losses)
#: other
best = int(np.argmin(losses))
print(f"best rate {rates[best]:.4f}, loss {losses[best]:.2f}")
