"""A physics loss whose table lookup is an old NumPy routine, called from the compiled step by `pure_callback`."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

GRID = np.linspace(-4, 4, 200)
TABLE = np.sin(GRID)[:, None] * np.cos(GRID)[None]


def look_up(points):
    """As the Fortran code of 1987 does it: point by point."""
    #: other
    out = np.empty(len(points), np.float32)
    for number, (a, b) in enumerate(np.asarray(points)):
        i, j = np.searchsorted(GRID, a), np.searchsorted(GRID, b)
        out[number] = TABLE[min(i, 199), min(j, 199)]
    #: step
    return out


optimizer = optax.adam(1e-3)


@jax.jit
def create(key):
    first, second = jax.random.split(key)
    params = {"in": jax.random.normal(first, (2, 256)), "out": jax.random.normal(second, (256, 1)) / 16}
    return params, optimizer.init(params)


@jax.jit
def train_step(params, state, points):
    target = jax.pure_callback(look_up, jax.ShapeDtypeStruct(points.shape[:1], jnp.float32), points)

    def loss_fn(params):
        return jnp.mean(((jnp.tanh(points @ params["in"]) @ params["out"])[:, 0] - target) ** 2)

    loss, gradients = jax.value_and_grad(loss_fn)(params)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(params, updates), state, loss


random = np.random.default_rng(0)
params, state = create(jax.random.key(0))
#: step
for number in range(500):
    points = random.normal(size=(6144, 2)).astype(np.float32)
    params, state, loss = train_step(params, state, points)
    if number % 100 == 99:
        print(f"step {number + 1}: loss {loss:.3f}")
#: other
