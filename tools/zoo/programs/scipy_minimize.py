"""Fits a kinetic model to 24 experiments with SciPy's L-BFGS: JAX gives the loss and its gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

TIMES = np.linspace(0, 10, 400)


def simulate(rates, start):
    a, b, c, d = jnp.exp(rates)

    def turn(state, _):
        x, y = state
        x, y = x + 0.0025 * (a * x - b * x * y), y + 0.0025 * (c * x * y - d * y)
        return (x, y), (x, y)

    _, path = jax.lax.scan(turn, (start[:, 0], start[:, 1]), length=4000)
    return jnp.stack(path)[:, ::10]


@jax.jit
def loss_and_gradient(rates, start, seen):
    return jax.value_and_grad(lambda r: jnp.mean((simulate(r, start) - seen) ** 2) + 1e-3 * jnp.sum(r**2))(rates)


@jax.jit
def observe(key, rates, start):
    path = simulate(rates, start)
    return path + 0.05 * jax.random.normal(key, path.shape)


random = np.random.default_rng(0)
found = []
for number in range(24):
    #: other
    true = np.log(np.array([1.0, 0.6, 0.5, 0.9]) * random.uniform(0.8, 1.2, 4)).astype(np.float32)
    start = random.uniform(0.5, 2, size=(64, 2)).astype(np.float32)
    seen = np.asarray(observe(jax.random.key(number), true, start))

    def objective(rates):
        value, gradient = loss_and_gradient(rates.astype(np.float32), start, seen)
        return float(value), np.asarray(gradient, np.float64)

    #: step
    result = scipy.optimize.minimize(objective, np.zeros(4), jac=True, method="L-BFGS-B", options={"maxiter": 15})
    found.append(np.abs(result.x - true).max())
#: other
print(f"largest error {max(found):.2f}")
