"""Takes a trace of some training steps: `traced_models.py transformer|convolutional|recurrent|experts FOLDER`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

NAME, FOLDER = sys.argv[1:3]
if NAME == "experts":
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402

STEPS = 5
KEYS = jax.random.split(jax.random.key(0), 8)


def normal(number: int, *shape: int, by: float = 1.0) -> jax.Array:
    return jax.random.normal(KEYS[number], shape) * by


def trained(loss: Callable[..., Any], *batch: Any) -> Callable[[Any], Any]:
    """A step of gradient descent."""

    def train_step(weights: Any) -> Any:
        gradients = jax.grad(loss)(weights, *batch)
        return jax.tree.map(lambda weight, gradient: weight - 0.01 * gradient, weights, gradients)

    return train_step


def transformer() -> tuple[Callable[[Any], Any], Any]:
    """Two layers with attention."""
    sizes = {"qkv": (128, 384), "out": (128, 128), "up": (128, 512), "down": (512, 128)}
    layer = {name: normal(number, *size, by=0.02) for number, (name, size) in enumerate(sizes.items())}

    def norm(x: jax.Array) -> jax.Array:
        return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    def loss(weights: Any, tokens: jax.Array) -> jax.Array:
        layers, table = weights
        x = table[tokens]
        for block in layers:
            parts = jnp.split(norm(x) @ block["qkv"], 3, -1)
            q, k, v = (part.reshape(4, 64, 4, 32).swapaxes(1, 2) for part in parts)
            mixed = jax.nn.softmax(q @ k.swapaxes(2, 3) / 8) @ v
            x = x + mixed.swapaxes(1, 2).reshape(x.shape) @ block["out"]
            x = x + jax.nn.gelu(norm(x) @ block["up"]) @ block["down"]
        likely = jax.nn.log_softmax(x @ table.T)
        return -jnp.take_along_axis(likely, jnp.roll(tokens, 1, 1)[..., None], -1).mean()

    step = trained(loss, jnp.zeros((4, 64), jnp.int32))
    return jax.jit(step), ([layer, dict(layer)], normal(4, 1000, 128))


def convolutional() -> tuple[Callable[[Any], Any], Any]:
    """Two convolutions with pooling."""
    kernels = [normal(0, 3, 3, 3, 16, by=0.1), normal(1, 3, 3, 16, 32, by=0.1)]

    def loss(weights: Any, images: jax.Array) -> jax.Array:
        kernels, dense = weights
        layout, pool = ("NHWC", "HWIO", "NHWC"), (1, 2, 2, 1)
        for kernel in kernels:
            convolved = jax.lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=layout)
            images = jax.lax.reduce_window(jax.nn.relu(convolved), -jnp.inf, jax.lax.max, pool, pool, "VALID")
        return (jax.nn.log_softmax(images.mean((1, 2)) @ dense) ** 2).mean()

    return jax.jit(trained(loss, normal(3, 16, 32, 32, 3))), (kernels, normal(2, 32, 10, by=0.1))


def recurrent() -> tuple[Callable[[Any], Any], Any]:
    """A cell in a scan."""

    def loss(weights: Any, inputs: jax.Array) -> jax.Array:
        def cell(state: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
            state = jnp.tanh(state @ weights["state"] + x @ weights["input"])
            return state, state.mean()

        return jax.lax.scan(cell, jnp.zeros((16, 128)), inputs)[1].sum()

    weights = {"state": jnp.eye(128) * 0.5, "input": jnp.ones((64, 128)) * 0.01}
    return jax.jit(trained(loss, jnp.ones((50, 16, 64)))), weights


def experts() -> tuple[Callable[[Any], Any], Any]:
    """A mixture of experts, one on each of eight devices."""
    mesh = Mesh(np.array(jax.devices()), ("x",))
    whole, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("x"))
    shardings = {"gate": whole, "up": split, "down": split}
    weights = {"gate": jnp.full((64, 8), 0.1), "up": jnp.full((8, 64, 256), 0.01), "down": jnp.full((8, 256, 64), 0.01)}

    def loss(weights: Any, x: jax.Array) -> jax.Array:
        given = jnp.einsum("bd,be->ebd", x, jax.nn.softmax(x @ weights["gate"]))
        hidden = jax.nn.relu(jnp.einsum("ebd,edf->ebf", given, weights["up"]))
        return ((jnp.einsum("ebf,efd->ebd", hidden, weights["down"]).sum(0) - x) ** 2).mean()

    step = trained(loss, jax.device_put(normal(0, 512, 64), split))
    return jax.jit(step, out_shardings=shardings), jax.device_put(weights, shardings)


step, state = {each.__name__: each for each in (transformer, convolutional, recurrent, experts)}[NAME]()
for _ in range(3):
    state = step(state)
jax.block_until_ready(state)
jax.profiler.start_trace(FOLDER)
for number in range(STEPS):
    with jax.profiler.StepTraceAnnotation("train", step_num=number):
        state = jax.block_until_ready(step(state))
jax.profiler.stop_trace()
