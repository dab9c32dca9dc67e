"""A flow trained by one scan an epoch, whose losses come back as one array; the mean is printed now and then."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax

optimizer = optax.adam(5e-2)


def log_density(params, x):
    total = 0.0
    for layer in params:
        hidden = jnp.tanh(x[:, :4] @ layer["in"])
        shift, scale = jnp.split(hidden @ layer["out"], 2, axis=1)
        x = jnp.concatenate([x[:, 4:] * jnp.exp(3 * scale) + shift, x[:, :4]], axis=1)
        total += 3 * scale.sum(1)
    return total - 0.5 * (x**2).sum(1)


@jax.jit
def create(key):
    def layer(key):
        first, second = jax.random.split(key)
        return {"in": jax.random.normal(first, (4, 256)) / 2, "out": jax.random.normal(second, (256, 8)) / 50}

    params = [layer(k) for k in jax.random.split(key, 6)]
    return params, optimizer.init(params)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def train_epoch(params, state, batches):
    def turn(carry, x):
        params, state = carry
        loss, gradients = jax.value_and_grad(lambda params: -log_density(params, x).mean())(params)
        updates, state = optimizer.update(gradients, state)
        return (optax.apply_updates(params, updates), state), loss

    (params, state), losses = jax.lax.scan(turn, (params, state), batches)
    return params, state, losses


random = np.random.default_rng(0)
data = random.standard_t(2, size=(30, 512, 8)).astype(np.float32) * 4
params, state = create(jax.random.key(0))
history = []
#: step
for epoch in range(120):
    params, state, losses = train_epoch(params, state, data)
    history.append(losses)
    if epoch % 40 == 39:
        print(f"epoch {epoch + 1}")
jax.block_until_ready(history)
#: other
print(f"loss {np.concatenate(history)[-1]:.1f}")
