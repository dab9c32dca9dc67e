"""Compares ten starts of a small network; the gradient is jitted for each of them."""

import jax
import jax.numpy as jnp
import numpy as np

random = np.random.default_rng(0)
x = random.normal(size=(64, 32)).astype(np.float32)
y = np.sin(x[:, :1])


def lossf(params, x, y):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return 0.5 * jnp.mean((x @ w + b - y) ** 2)


def start(seed):
    random = np.random.default_rng(seed)
    sizes = [32, 64, 64, 64, 64, 1]
    return [
        (random.normal(size=(n, m)).astype(np.float32) / np.sqrt(n), np.zeros(m, np.float32))
        for n, m in zip(sizes, sizes[1:], strict=False)
    ]


#: step
for k in range(10):
    params = start(k)
    gradf = jax.jit(jax.grad(lossf))
    for _ in range(30):
        gradients = gradf(params, x, y)
        params = jax.tree.map(lambda p, g: p - 0.1 * np.asarray(g), params, gradients)
    print(f"start {k}: largest weight {max(np.abs(w).max() for w, _ in params):.2f}")
