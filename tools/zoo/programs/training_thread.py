"""Equinox: a thread trains, and the main thread waits to show how far it is, as a window or a notebook does."""

import threading

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

STEPS = 120
optimizer = optax.adam(3e-3)
progress = []


@eqx.filter_jit
def build(key):
    model = eqx.nn.MLP(16, 1, 128, 2, key=key)
    return model, optimizer.init(eqx.filter(model, eqx.is_array))


@eqx.filter_jit(donate="all")
def train_step(model, state, x, y):
    def loss_fn(model):
        return jnp.mean((jax.vmap(model)(x)[:, 0] - y) ** 2)

    loss, gradients = eqx.filter_value_and_grad(loss_fn)(model)
    updates, state = optimizer.update(gradients, state)
    return eqx.apply_updates(model, updates), state, loss


def train(done):
    #: other
    random = np.random.default_rng(0)
    model, state = build(jax.random.PRNGKey(0))
    #: step
    for number in range(1, STEPS + 1):
        x = random.normal(size=(256, 16)).astype(np.float32)
        model, state, loss = train_step(model, state, x, np.sin(x.sum(-1)))
        if number % 40 == 0:
            progress.append((number, float(loss)))
    #: other
    done.set()


done = threading.Event()
threading.Thread(target=train, args=(done,)).start()
while not done.wait(0.25):
    pass
for number, loss in progress:
    print(f"step {number}: loss {loss:.2f}")
