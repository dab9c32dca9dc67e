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


def trained(loss: Callable[..., Any], *batch: Any) -> Callable[[Any], Any]:
    """A step of gradient descent."""

    def train_step(weights: Any) -> Any:
        gradients = jax.grad(loss)(weights, *batch)
        return jax.tree.map(lambda weight, gradient: weight - 0.01 * gradient, weights, gradients)

    return train_step


def transformer() -> tuple[Callable[[Any], Any], Any]:
    """Two layers with attention."""
    width, heads, length, batch = 128, 4, 64, 4
    layer = {
        "qkv": jax.random.normal(KEYS[0], (width, 3 * width)) * 0.02,
        "out": jax.random.normal(KEYS[1], (width, width)) * 0.02,
        "up": jax.random.normal(KEYS[2], (width, 4 * width)) * 0.02,
        "down": jax.random.normal(KEYS[3], (4 * width, width)) * 0.02,
    }
    tokens = jnp.zeros((batch, length), jnp.int32)

    def norm(x: jax.Array) -> jax.Array:
        return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    def apply(weights: Any, x: jax.Array) -> jax.Array:
        def split(t: jax.Array) -> jax.Array:
            return t.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)

        with jax.named_scope("attention"):
            q, k, v = map(split, jnp.split(norm(x) @ weights["qkv"], 3, -1))
            mixed = jax.nn.softmax(q @ k.transpose(0, 1, 3, 2) / 8) @ v
            x = x + mixed.transpose(0, 2, 1, 3).reshape(batch, length, width) @ weights["out"]
        with jax.named_scope("mlp"):
            return x + jax.nn.gelu(norm(x) @ weights["up"]) @ weights["down"]

    def loss(weights: Any, tokens: jax.Array) -> jax.Array:
        layers, table = weights
        x = table[tokens]
        for each in layers:
            x = apply(each, x)
        likely = jax.nn.log_softmax(x @ table.T)
        return -jnp.take_along_axis(likely, jnp.roll(tokens, 1, 1)[..., None], -1).mean()

    return jax.jit(trained(loss, tokens)), ([layer, dict(layer)], jax.random.normal(KEYS[4], (1000, width)))


def convolutional() -> tuple[Callable[[Any], Any], Any]:
    """Two convolutions with pooling."""
    weights = {
        "first": jax.random.normal(KEYS[0], (3, 3, 3, 16)) * 0.1,
        "second": jax.random.normal(KEYS[1], (3, 3, 16, 32)) * 0.1,
        "dense": jax.random.normal(KEYS[2], (32, 10)) * 0.1,
    }

    def loss(weights: Any, images: jax.Array) -> jax.Array:
        for name in ("first", "second"):
            with jax.named_scope(name):
                images = jax.nn.relu(
                    jax.lax.conv_general_dilated(
                        images, weights[name], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
                    )
                )
                images = jax.lax.reduce_window(
                    images, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
                )  # fmt: skip
        return (jax.nn.log_softmax(images.mean((1, 2)) @ weights["dense"]) ** 2).mean()

    return jax.jit(trained(loss, jax.random.normal(KEYS[3], (16, 32, 32, 3)))), weights


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
    mesh, width = Mesh(np.array(jax.devices()), ("x",)), 64
    whole, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("x"))
    shardings = {"gate": whole, "up": split, "down": split}
    weights = jax.device_put(
        {
            "gate": jnp.ones((width, 8)) * 0.1,
            "up": jnp.ones((8, width, 4 * width)) * 0.01,
            "down": jnp.ones((8, 4 * width, width)) * 0.01,
        },
        shardings,
    )
    batch = jax.device_put(jax.random.normal(KEYS[0], (512, width)), split)

    def loss(weights: Any, x: jax.Array) -> jax.Array:
        chosen = jax.nn.softmax(x @ weights["gate"])
        with jax.named_scope("dispatch"):
            given = jnp.einsum("bd,be->ebd", x, chosen)
        with jax.named_scope("experts"):
            hidden = jax.nn.relu(jnp.einsum("ebd,edf->ebf", given, weights["up"]))
            made = jnp.einsum("ebf,efd->ebd", hidden, weights["down"]).sum(0)
        return ((made - x) ** 2).mean()

    return jax.jit(trained(loss, batch), out_shardings=shardings), weights


step, state = {each.__name__: each for each in (transformer, convolutional, recurrent, experts)}[NAME]()
for _ in range(3):
    state = step(state)
jax.block_until_ready(state)
jax.profiler.start_trace(FOLDER)
for number in range(STEPS):
    with jax.profiler.StepTraceAnnotation("train", step_num=number):
        state = jax.block_until_ready(step(state))
jax.profiler.stop_trace()
