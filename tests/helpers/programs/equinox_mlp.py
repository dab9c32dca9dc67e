"""Equinox: a small network trained with `filter_jit`, Optax, and a remainder batch."""

from __future__ import annotations

import sys
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax


@eqx.filter_jit
def make_step(model: Any, state: Any, images: Any, targets: Any, optimizer: Any) -> Any:
    loss, gradients = eqx.filter_value_and_grad(mean_squared_error)(model, images, targets)
    updates, state = optimizer.update(gradients, state, model)
    return loss, eqx.apply_updates(model, updates), state


def mean_squared_error(model: Any, images: Any, targets: Any) -> Any:
    """The loss over a batch."""
    return jnp.mean((jax.vmap(model)(images) - targets) ** 2)


def main() -> None:
    """Two epochs over 100 points in batches of 32, and exit code 3 to be carried through."""
    generator = np.random.default_rng(0)
    points = generator.random((100, 2), dtype=np.float32)
    targets = points.sum(axis=1, keepdims=True)
    model = eqx.nn.MLP(2, 1, width_size=16, depth=2, key=jax.random.key(0))
    optimizer = optax.adam(1e-2)
    state = optimizer.init(eqx.filter(model, eqx.is_array))
    for epoch in range(2):
        for start in range(0, 100, 32):
            batch = slice(start, start + 32)
            loss, model, state = make_step(model, state, points[batch], targets[batch], optimizer)
        print("epoch", epoch, "loss", f"{loss:.5f}")
    model = eqx.nn.inference_mode(model)
    print("at one", f"{model(jnp.ones(2))[0]:.4f}")
    sys.exit(3)


if __name__ == "__main__":
    main()
